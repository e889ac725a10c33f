"""A bounded cache keyed by tokens; for the modules of authn."""

import threading
from typing import Generic, TypeVar

from cachetools import LRUCache

T = TypeVar("T")


class TokenCache(Generic[T]):
    """A least-recently-used cache whose keys are `digest_of(token)`. Thread-safe."""

    def __init__(self, *, capacity: int) -> None:
        self._entries: LRUCache[bytes, T] = LRUCache(capacity)
        self._lock = threading.Lock()

    def find(self, digest: bytes) -> T | None:
        with self._lock:
            return self._entries.get(digest)

    def put(self, digest: bytes, entry: T) -> None:
        with self._lock:
            self._entries[digest] = entry

    def discard(self, digest: bytes) -> None:
        with self._lock:
            self._entries.pop(digest, None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)
