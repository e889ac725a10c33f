"""Ends a process in its time: TERM and INT are waited for by a thread, from the start on, so that none is lost."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})
_KILLED_BY: Final = 128  # a shell's exit code of a process that a signal ended is this and the signal's number


class Stop:
    """The first signal begins the stop, the second ends the process at once.

    Until there is something to stop, the first one ends it.
    """

    def __init__(self) -> None:
        self._begin: Callable[[], None] | None = None
        self._bound_s = 0.0
        self._lock = threading.Lock()

    def watch(self) -> None:
        """From now on the signals are ours; called by the main thread before it starts others."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def prepare(self, begin: Callable[[], None], *, bound_s: float) -> None:
        """`begin` is to be called by the first signal; `bound_s` seconds later the process ends, whatever is stuck."""
        with self._lock:
            self._begin, self._bound_s = begin, bound_s

    def _wait(self) -> None:
        signal.sigwait(_SIGNALS)
        with self._lock:
            if self._begin is None:
                os._exit(0)
        end = threading.Timer(self._bound_s, os._exit, [0])
        end.daemon = True
        end.start()
        self._begin()
        os._exit(_KILLED_BY + signal.sigwait(_SIGNALS))
