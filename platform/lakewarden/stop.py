"""Stops a process in time: from the start on, a thread waits for TERM, INT and HUP, so no signal is lost."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
AFTERWARDS_S: Final = 4.0
"""Seconds for the rest of the shutdown after the time for requests in progress."""
# the exit code of a process that a signal ended is 128 plus the number of the signal, as in shells
_KILLED_BY: Final = 128


class Stop:
    """The first signal starts to stop the process, the second one ends it immediately.

    Before `prepare` is called, the first signal ends the process. In one of several processes (`is_one_of_several`), a
    second signal is ignored: a terminal sends signals to the whole group, so it may be the same one that the
    supervisor handles.
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
        """Take over the signals; must be called in the main thread, before other threads start."""
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # `nohup` ignores SIGHUP, which must stay so
            self._signals -= {signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def prepare(self, begin: Callable[[], None], *, bound_s: float, at_last: Callable[[], None] | None = None) -> None:
        """Call `begin` at the first signal; `bound_s` seconds later the process ends, even if something hangs.

        `at_last` is called before that, or at a second signal.
        """
        with self._lock:
            self._begin, self._bound_s, self._at_last = begin, bound_s, at_last

    def begin(self) -> None:
        """Start to stop the process, unless it has started already; any thread may call it."""
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
