"""The children of one process: watched together while they run, stopped together, the last started first."""

import errno
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from standalone.errors import EmbeddedError
from standalone.process import ManagedProcess

_WATCH_S = 0.25


class ProcessTree:
    """Owns processes, and whatever else has to be undone when they stop."""

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._children: list[ManagedProcess] = []

    def on_stop(self, undo: Callable[[], None]) -> None:
        """Have `undo` called by `stop`, before everything that was registered earlier."""
        self._undo.callback(undo)

    def watch(self, child: ManagedProcess) -> None:
        """Count the end of `child` as a failure from now on."""
        self._children.append(child)

    def adopt(self, child: ManagedProcess) -> None:
        """Stop `child` by `stop`, and count its end before that as a failure."""
        self.on_stop(child.stop)
        self.watch(child)

    def require_alive(self) -> None:
        """`EmbeddedError` with the end of its log, if a child has ended by itself."""
        for child in self._children:
            if child.exited:
                raise EmbeddedError(child.obituary(when="unexpectedly"))

    def wait(self) -> None:
        """Return when this process is told to stop (`signals.interrupting`); else as `require_alive`."""
        try:
            while True:
                self.require_alive()
                time.sleep(_WATCH_S)
        except KeyboardInterrupt:
            return

    def stop(self) -> bool:
        """Stop all of it; whether there was a child to stop. Twice does no harm."""
        had_children = bool(self._children)
        self._children.clear()
        self._undo.close()
        return had_children


def refusal(error: OSError, *, data_dir: Path) -> EmbeddedError:
    """The sentence for a refusal of the operating system that nobody foresaw."""
    place = error.filename or data_dir
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return EmbeddedError(
            f"The disk that holds {place} is full: free some, or give another directory with --data-dir."
        )
    return EmbeddedError(
        f"{place} cannot be used: {error.strerror or error}. "
        "Start as the owner of the data directory, or give another one with --data-dir."
    )
