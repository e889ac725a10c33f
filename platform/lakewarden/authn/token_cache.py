"""A bounded cache keyed by tokens; for the modules of authn."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class TokenCache(Generic[T]):
    """A least-recently-used cache whose keys are `digest_of(token)`. Thread-safe."""

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, digest: bytes) -> T | None:
        with self._lock:
            entry = self._entries.get(digest)
            if entry is not None:
                self._entries.move_to_end(digest)
            return entry

    def put(self, digest: bytes, entry: T) -> None:
        with self._lock:
            self._entries[digest] = entry
            self._entries.move_to_end(digest)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def discard(self, digest: bytes) -> None:
        with self._lock:
            self._entries.pop(digest, None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)
