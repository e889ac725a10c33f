"""A circuit breaker for each place: a store that fails again and again is left alone, and asked again by one call."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from lakewarden import board
from lakewarden.storage.interface import StorageBusy, StorageError, StorageUnavailable

logger = logging.getLogger(__name__)


class LeftAlone(NamedTuple):
    """A store that calls do not reach: since how many seconds, and how many were refused; `fault` was the last one."""

    place: str
    seconds: float
    refused: int
    fault: str
    kind: str


_open: "dict[str, Breaker]" = {}
"""The breakers of this process that refuse calls, by their places."""


def left_alone() -> list[LeftAlone]:
    """The stores and token services that this process leaves alone, in the order of their places."""
    return [each.state() for _, each in sorted(_open.copy().items())]


class Breaker:
    """Refuses calls for `pause_s` after `most` failures in a row; then one call at a time may try.

    Only errors that it `counts` are failures: a store that answers, even with a refusal, is well.
    """

    def __init__(
        self,
        place: str,
        *,
        most: int,
        pause_s: float,
        kind: str = "storage",
        counts: type[StorageUnavailable] = StorageUnavailable,
    ) -> None:
        self._place, self._most, self._pause_s = place, most, pause_s
        self._kind, self._counts = kind, counts
        self._failures = self._refused = 0
        self._again_at = self._ill_since = 0.0
        self._fault = ""
        self._is_tried = False
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether calls are refused, except for one that tries."""
        return self._failures >= self._most

    @property
    def is_failing(self) -> bool:
        """Whether the last call failed."""
        return self._failures > 0

    def state(self) -> LeftAlone:
        return LeftAlone(self._place, time.monotonic() - self._ill_since, self._refused, self._fault, self._kind)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Around a call. Raises StorageUnavailable at once while the store is left alone."""
        tries = self._enter()
        try:
            yield
        except StorageBusy:
            raise  # it never reached the store
        except StorageError as error:
            if isinstance(error, self._counts):
                self._failed(error)
            else:
                self._answered()
            raise
        else:
            self._answered()
        finally:
            if tries:
                self._is_tried = False

    def _enter(self) -> bool:
        """Whether this is the one call that tries."""
        with self._lock:
            if not self.is_open:
                return False
            left = self._again_at - time.monotonic()
            if self._is_tried or left > 0:
                self._refused += 1
                raise StorageUnavailable(
                    f"The {self._kind} at {self._place} failed {self._failures} times in a row, and is left alone: "
                    f"it is tried again within {max(left, self._pause_s):.0f} s"
                )
            self._is_tried = True
            return True

    def _failed(self, error: StorageError) -> None:
        with self._lock:
            self._failures += 1
            self._fault = str(error)
            self._again_at = time.monotonic() + self._pause_s
            if self._failures != self._most:
                return
            self._ill_since, self._refused = time.monotonic(), 0
            _open[self._place] = self
            board.current().note_left_alone(len(_open))
        logger.warning("The %s at %s fails, and is left alone for a while: %s", self._kind, self._place, error)

    def _answered(self) -> None:
        with self._lock:
            was_open, refused = self.is_open, self._refused
            self._failures = 0
            if was_open:
                _open.pop(self._place, None)
                board.current().note_left_alone(len(_open))
        if was_open:
            seconds = time.monotonic() - self._ill_since
            logger.warning(
                "The %s at %s answers again after %.0f s: %d calls were refused",
                self._kind,
                self._place,
                seconds,
                refused,
            )
