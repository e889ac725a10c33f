"""A bounded memory of verified tokens, so that a known token costs a hash and a lookup; for oidc.py."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class TokenCache(Generic[T]):
    """Least-recently-used map from sha256(token) to what was verified. Thread-safe.

    `generation` changes with every `clear`: a value that was verified with keys of an older generation
    is not stored, so that a token that lost its key cannot slip back in.
    """

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        self._lock = threading.Lock()
        self.generation = 0

    def find(self, digest: bytes) -> T | None:
        with self._lock:
            entry = self._entries.get(digest)
            if entry is not None:
                self._entries.move_to_end(digest)
            return entry

    def put(self, digest: bytes, entry: T, *, generation: int) -> None:
        with self._lock:
            if generation != self.generation:
                return
            self._entries[digest] = entry
            self._entries.move_to_end(digest)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def discard(self, digest: bytes) -> None:
        with self._lock:
            self._entries.pop(digest, None)

    def clear(self) -> None:
        with self._lock:
            self.generation += 1
            self._entries.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)
