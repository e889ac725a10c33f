"""The thread that writes counts of calls and audit entries in the background; started by asgi.py."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from django.db import Error, connection

logger = logging.getLogger(__name__)

_LONGEST_PAUSE_S: Final = 30.0
_LOGGED_EVERY_S: Final = 60.0


@dataclass(slots=True)
class PeriodicWrite:
    """Periodic work: `work` is called every `interval_s` seconds, and `finish` (else `work`) when the server stops.

    It must keep what it cannot write.

    After a failure it is called again after growing pauses. `failing_since` is in seconds of the monotonic clock, None
    after a success.
    """

    name: str
    interval_s: float
    work: Callable[[], None]
    finish: Callable[[], None] | None = None
    failing_since: float | None = None
    _failures: int = field(default=0, repr=False)
    _logged_at: float = field(default=float("-inf"), repr=False)

    def perform(self, *, last: bool = False) -> float:
        """Call it; returns the seconds until the next call. Never raises.

        A failure is logged at most once a minute; it also closes the connection, so the next call opens a new one.
        """
        try:
            (self.finish or self.work if last else self.work)()
        except Exception as error:  # noqa: BLE001 this thread must survive every defect, because no other one writes
            with suppress(Error):
                connection.close()
            return self._failed(error, must_log=last)
        if self.failing_since is not None:
            logger.warning("%s are written again", self.name)
        self.failing_since, self._failures, self._logged_at = None, 0, float("-inf")
        return self.interval_s

    def _failed(self, error: Exception, *, must_log: bool) -> float:
        now = time.monotonic()
        self.failing_since = self.failing_since if self.failing_since is not None else now
        self._failures += 1
        if must_log or now - self._logged_at >= _LOGGED_EVERY_S:
            self._logged_at = now
            defect = None if isinstance(error, Error) else error
            reason = str(error).strip() or type(error).__name__
            logger.warning("%s could not be written: %s", self.name, reason, exc_info=defect)
        return max(self.interval_s, min(self.interval_s * 2.0 ** min(self._failures, 10), _LONGEST_PAUSE_S))


class BackgroundWriter:
    """Calls its writes until it is stopped. While the database is down, only this thread waits for it."""

    def __init__(self, writes: Sequence[PeriodicWrite]) -> None:
        self._writes = writes
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="background-writer", daemon=True)

    def start(self) -> None:
        global _started  # noqa: PLW0603 one for the process; `is_failing` is called from anywhere
        _started = self
        self._thread.start()

    def stop(self, *, timeout_s: float) -> None:
        """Call every write once more, but wait no longer than `timeout_s`."""
        self._stopping.set()
        if self._thread.ident is not None:  # it was never started if the server stops during its start
            self._thread.join(timeout_s)

    def failing(self) -> dict[str, float]:
        """The writes that are failing, each with the seconds since its first failure."""
        now = time.monotonic()
        return {each.name: now - each.failing_since for each in self._writes if each.failing_since is not None}

    def _run(self) -> None:
        due = {write.name: time.monotonic() + write.interval_s for write in self._writes}
        while not self._stopping.wait(max(0.0, min(due.values()) - time.monotonic())):
            for write in self._writes:
                if due[write.name] <= time.monotonic():
                    due[write.name] = time.monotonic() + write.perform()
        for write in self._writes:
            write.perform(last=True)
        connection.close()


_started: BackgroundWriter | None = None


def is_failing() -> bool:
    """Whether the last attempt of any write of this process failed."""
    return _started is not None and bool(_started.failing())
