"""Token buckets: `rate` per second, of which `burst` may come at once."""

import time
from typing import Final

from cachetools import LRUCache

_REMEMBERED: Final = 10_000


class TokenBucket:
    """Belongs to one thread. It starts full."""

    __slots__ = ("_burst", "_rate", "_seen", "_tokens")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._seen = time.monotonic()

    def take(self) -> bool:
        """One token, if there is one."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    @property
    def remaining(self) -> int:
        self._fill()
        return int(self._tokens)

    @property
    def full_in_s(self) -> float:
        """Seconds until as many as possible may come again."""
        self._fill()
        return (self._burst - self._tokens) / self._rate

    @property
    def next_in_s(self) -> float:
        self._fill()
        return max(0.0, (1 - self._tokens) / self._rate)

    def _fill(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._rate)
        self._seen = now


class Buckets:
    """One for each key; those that were not used for the longest time are forgotten, which refills them."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._known: LRUCache[object, TokenBucket] = LRUCache(_REMEMBERED)

    def of(self, key: object) -> TokenBucket:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = TokenBucket(self._rate, self._burst)
        return found
