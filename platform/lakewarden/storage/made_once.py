"""Remembers what is dear to make; calls of one moment for the same share one making."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

from lakewarden.storage.interface import StorageUnavailable

T = TypeVar("T")


class StillBeingMade(Exception):
    """Another caller has been making it for longer than this one waits."""


class MadeOnce(Generic[T]):
    """At most `capacity` are kept, shared by all threads of a process."""

    def __init__(self, capacity: int) -> None:
        self._kept: LRUCache[Hashable, T] = LRUCache(capacity)
        self._running: dict[Hashable, Future[T]] = {}
        self._lock = Lock()

    def find(self, key: Hashable) -> T | None:
        with self._lock:
            return self._kept.get(key)

    def get(
        self,
        key: Hashable,
        make: Callable[[], T],
        *,
        is_good: Callable[[T], bool] = lambda _: True,
        is_of_use: Callable[[T], bool] = lambda _: False,
        patience_s: float | None = None,
    ) -> T:
        """What is kept and good, or else what `make` returns.

        What is kept and still of use is returned while another caller makes a new one, and if that is not possible
        now (StorageUnavailable). Otherwise raises what `make` raises, which is not remembered, and StillBeingMade
        after `patience_s` (None: never).
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and is_good(kept):
                return kept
            others = self._running.get(key)
            if others is None:
                mine = self._running[key] = Future()
        if others is None:
            try:
                return self._make(key, make, mine)
            except StorageUnavailable:
                if kept is not None and is_of_use(kept):
                    return kept
                raise
        if kept is not None and is_of_use(kept):
            return kept
        try:
            return others.result(patience_s)
        except TimeoutError:
            if others.done():  # it was the error of `make`
                raise
            raise StillBeingMade from None

    def _make(self, key: Hashable, make: Callable[[], T], outcome: Future[T]) -> T:
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                del self._running[key]
            outcome.set_exception(error)
            raise
        with self._lock:
            self._kept[key] = made
            del self._running[key]
        outcome.set_result(made)
        return made
