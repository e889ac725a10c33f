"""A storage that lets only so many calls in at once: one that hangs must not take every thread with it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Condition

from lakewarden.storage.breaker import Breaker
from lakewarden.storage.client_access import AccessRequest, ClientAccess
from lakewarden.storage.interface import Storage, StorageBusy
from lakewarden.storage.removal import Found, Removed

PATIENCE_S = 2.0


class Places:
    """Places for calls to one storage, or to the service with this name, whoever makes them in this process."""

    def __init__(self, most: int, *, patience_s: float = PATIENCE_S, name: str = "The warehouse's storage") -> None:
        self._most = most
        self._name = name
        self._patience_s = patience_s
        self._inside = 0
        self._moved_at = 0.0
        self._changed = Condition()

    @contextmanager
    def one(self, *, waits: bool = True) -> Iterator[None]:
        """Around a call. Raises StorageBusy when no place gets free: at once while no call ends any more."""
        with self._changed:
            if self._inside == 0:
                self._moved_at = time.monotonic()
            left = self._moved_at + self._patience_s - time.monotonic() if waits else 0.0
            if not self._changed.wait_for(lambda: self._inside < self._most, max(0.0, left)):
                raise StorageBusy(f"{self._name} does not answer: {self._inside} calls wait for it")
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._moved_at = time.monotonic()
                self._changed.notify()


class BoundedStorage:
    """Every call that a request may make takes a place; the removal of files, a worker's, takes none.

    The calls that certainly reach the store pass the breaker, too.
    """

    def __init__(self, inner: Storage, places: Places, breaker: Breaker) -> None:
        self._inner = inner
        self._places = places
        self._breaker = breaker

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        with self._breaker.guarded(), self._places.one():
            yield

    def write_new(self, location: str, content: bytes) -> None:
        with self._reaching():
            self._inner.write_new(location, content)

    def read(self, location: str, *, limit: int) -> bytes:
        with self._reaching():
            return self._inner.read(location, limit=limit)

    def delete(self, location: str) -> None:
        with self._reaching():
            self._inner.delete(location)

    def is_known_missing(self, location: str) -> bool:
        try:
            with self._places.one():
                return self._inner.is_known_missing(location)
        except StorageBusy:
            return False

    def is_empty(self, location: str, *, since: datetime | None = None) -> bool:
        with self._reaching():
            return self._inner.is_empty(location, since=since)

    def survey(self, location: str, *, within: str) -> Iterator[Found]:
        return self._inner.survey(location, within=within)

    def folders(self, location: str) -> Iterator[str]:
        return self._inner.folders(location)

    def remove(self, found: Sequence[Found], *, within: str, at_once: int) -> Removed:
        return self._inner.remove(found, within=within, at_once=at_once)

    def ensure_there(self) -> None:
        with self._reaching():
            self._inner.ensure_there()

    def client_access(self, request: AccessRequest) -> ClientAccess:
        # what is kept needs no call, and a call goes to a token service, which has places of its own
        return self._inner.client_access(request)

    def nearest_folder(self, location: str) -> str:
        with self._places.one():
            return self._inner.nearest_folder(location)

    def make_folder(self, location: str) -> None:
        with self._places.one():
            self._inner.make_folder(location)

    def remove_empty(self, location: str, *, inside: str) -> None:
        with self._places.one():
            self._inner.remove_empty(location, inside=inside)
