"""Remembers opened storages, and what signs for them: both are dear to open, with a credential of the secret store."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

from lakewarden.storage.interface import StorageBusy

T = TypeVar("T")

PATIENCE_S = 30.0


class OpenedStorages(Generic[T]):
    """At most `most`, of the whole process; whoever wants one that is being opened waits for that."""

    def __init__(self, most: int, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = Lock()
        self._opened: LRUCache[Hashable, T] = LRUCache(most)
        self._opening: dict[Hashable, Future[T]] = {}

    def get(self, key: Hashable, opening: Callable[[], T]) -> T:
        """Raises what `opening` raises, which is not remembered, and StorageBusy if another caller's takes too long."""
        with self._lock:
            if (found := self._opened.get(key)) is not None:
                return found
            others = self._opening.get(key)
            if others is None:
                mine = self._opening[key] = Future()
        if others is None:
            return self._open(key, opening, mine)
        try:
            return others.result(self._patience_s)
        except TimeoutError:
            raise StorageBusy("The warehouse's storage is still being opened") from None

    def _open(self, key: Hashable, opening: Callable[[], T], outcome: Future[T]) -> T:
        try:
            storage = opening()
        except BaseException as error:
            with self._lock:
                del self._opening[key]
            outcome.set_exception(error)
            raise
        with self._lock:
            self._opened[key] = storage
            del self._opening[key]
        outcome.set_result(storage)
        return storage
