"""A cache of bounded size in which one caller's entries do not push out those of others."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Caller = TypeVar("Caller", bound=Hashable)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class FairCache(Generic[Caller, Key, Value]):
    """When it is full, the caller with the most entries loses the one that was not used for longest.

    Belongs to one thread.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._kept: dict[Caller, OrderedDict[Key, Value]] = {}

    def __len__(self) -> int:
        return self._size

    def get(self, caller: Caller, key: Key) -> Value | None:
        own = self._kept.get(caller)
        if own is None or key not in own:
            return None
        own.move_to_end(key)
        return own[key]

    def put(self, caller: Caller, key: Key, value: Value) -> None:
        self.remove(caller, key)
        if self._size == self._most:
            first = max(self._kept, key=lambda each: len(self._kept[each]))
            self.remove(first, next(iter(self._kept[first])))
        self._kept.setdefault(caller, OrderedDict())[key] = value
        self._size += 1

    def remove(self, caller: Caller, key: Key) -> None:
        """If it is there."""
        own = self._kept.get(caller)
        if own is None or key not in own:
            return
        del own[key]
        self._size -= 1
        if not own:
            del self._kept[caller]
