"""Remembers answers as they were sent, for hot routes whose look-up proves that they are still right."""

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

_ALL = 100


class KeptAnswers(Generic[T]):
    """At most `capacity` bytes, and of what one caller had built at most `percent` of it: the least recently used goes.

    Belongs to one event loop. Whoever finds something here must compare it with what the database has just said.
    """

    def __init__(self, capacity: int, *, percent: int) -> None:
        self._capacity = capacity
        self._share = capacity * percent // _ALL
        self._kept: OrderedDict[Hashable, tuple[T, int, str]] = OrderedDict()
        self._of: dict[str, OrderedDict[Hashable, None]] = {}
        """The keys of each caller, so that theirs are found among all."""
        self._held: Counter[str] = Counter()
        self.held = 0
        """Bytes of all callers."""

    def find(self, key: Hashable) -> T | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        self._of[kept[2]].move_to_end(key)
        return kept[0]

    def keep(self, key: Hashable, answer: T, *, size: int, caller: str) -> None:
        """Keep it in the place of what has this key; nothing is kept that is larger than a caller's share."""
        self._forget(key)
        if size > self._share:
            return
        while self._held[caller] + size > self._share:
            self._forget(next(iter(self._of[caller])))
        while self.held + size > self._capacity:
            self._forget(next(iter(self._kept)))
        self._kept[key] = answer, size, caller
        self._of.setdefault(caller, OrderedDict())[key] = None
        self._held[caller] += size
        self.held += size

    def _forget(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is None:
            return
        _, size, caller = kept
        del self._of[caller][key]
        self._held[caller] -= size
        self.held -= size
        if not self._of[caller]:
            del self._of[caller], self._held[caller]
