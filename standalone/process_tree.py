"""The child processes of one process, watched together and stopped in reverse order."""

import errno
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from standalone.errors import EmbeddedError
from standalone.process import ManagedProcess

_WATCH_S = 0.25


class ProcessTree:
    """Owns processes, and other things that must be undone at the end."""

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._children: list[ManagedProcess] = []

    def on_stop(self, undo: Callable[[], None]) -> None:
        """Register `undo`, which `stop` calls before everything that was registered earlier."""
        self._undo.callback(undo)

    def watch(self, child: ManagedProcess) -> None:
        """From now on, treat the end of `child` as a failure."""
        self._children.append(child)

    def adopt(self, child: ManagedProcess) -> None:
        """Register `child`: `stop` stops it, and an earlier end is a failure."""
        self.on_stop(child.stop)
        self.watch(child)

    def require_alive(self) -> None:
        """Raises EmbeddedError with the end of its log if a child has ended."""
        for child in self._children:
            if child.exited:
                raise EmbeddedError(child.obituary(when="unexpectedly"))

    def wait(self) -> None:
        """Return when a signal asks this process to stop (`signals.interrupting`).

        Raises what `require_alive` raises.
        """
        try:
            while True:
                self.require_alive()
                time.sleep(_WATCH_S)
        except KeyboardInterrupt:
            return

    def stop(self) -> bool:
        """Stop everything; returns whether there was a child to stop. Idempotent."""
        had_children = bool(self._children)
        self._children.clear()
        self._undo.close()
        return had_children


def refusal(error: OSError, *, data_dir: Path) -> EmbeddedError:
    """The message for an unexpected error of the operating system."""
    place = error.filename or data_dir
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return EmbeddedError(
            f"The disk that holds {place} is full: free some, or give another directory with --data-dir."
        )
    return EmbeddedError(
        f"{place} cannot be used: {error.strerror or error}. "
        "Start as the owner of the data directory, or give another one with --data-dir."
    )
