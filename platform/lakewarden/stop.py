"""Ends a process in its time: TERM, INT and HUP are waited for by a thread, from the start on, so that none is lost."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
AFTERWARDS_S: Final = 4.0
"""For what a server has left to do when the time of its requests in progress is over."""
_KILLED_BY: Final = 128  # a shell's exit code of a process that a signal ended is this and the signal's number


class Stop:
    """The first signal begins the stop, the second ends the process at once.

    Until there is something to stop, the first one ends it. A process of several is told by its supervisor what to
    do: further signals may be the same one, sent to all processes of a group, and are nothing new.
    """

    def __init__(self, *, is_one_of_several: bool = False) -> None:
        self._is_one_of_several = is_one_of_several
        self._begin: Callable[[], None] | None = None
        self._bound_s = 0.0
        self._at_last: Callable[[], None] | None = None
        self._has_begun = False
        self._lock = threading.Lock()
        self._signals = _SIGNALS

    def watch(self) -> None:
        """Takes over the signals; called by the main thread before it starts others."""
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by `nohup`, and so it stays
            self._signals -= {signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def prepare(self, begin: Callable[[], None], *, bound_s: float, at_last: Callable[[], None] | None = None) -> None:
        """`begin` is to be called by the first signal; `bound_s` seconds later the process ends, whatever is stuck.

        `at_last` is called before it ends so, or by a second signal.
        """
        with self._lock:
            self._begin, self._bound_s, self._at_last = begin, bound_s, at_last

    def begin(self) -> None:
        """Begin the stop, if that has not been done yet; any thread may call it."""
        with self._lock:
            if self._begin is None:
                os._exit(0)
            if self._has_begun:
                return
            self._has_begun = True
        end = threading.Timer(self._bound_s, self._end, [0])
        end.daemon = True
        end.start()
        self._begin()

    def _wait(self) -> None:
        signal.sigwait(self._signals)
        self.begin()
        if not self._is_one_of_several:
            self._end(_KILLED_BY + signal.sigwait(self._signals))

    def _end(self, code: int) -> None:
        if self._at_last is not None:
            self._at_last()
        os._exit(code)
