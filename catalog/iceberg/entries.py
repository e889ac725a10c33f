"""Array members of the metadata while a commit changes them: found by key, as a commit may have thousands of updates,
and each must cost the same however large the array is.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

from msgspec import Raw

from catalog.iceberg import wire

T = TypeVar("T")


def extended(stored: Raw, added: Sequence[object]) -> Raw:
    """The JSON array `stored` with more entries at its end; the stored ones are copied together, as they are."""
    if not added:
        return stored
    old, new = memoryview(stored), memoryview(wire.compact(added))
    return Raw(new if _EMPTY.fullmatch(old) else b"".join((old[:-1], b",", new[1:])))


_EMPTY: Final = re.compile(rb"\[[ \t\r\n]*\]")


class KeyedEntries:
    """Entries with a key, such as statistics files by their snapshot; a stored document may have several with one."""

    def __init__(self, entries: Iterable[Raw], key: Callable[[Raw], Hashable]) -> None:
        self._entries = dict(enumerate(entries))
        self._positions: defaultdict[Hashable, list[int]] = defaultdict(list)
        for position, raw in self._entries.items():
            self._positions[key(raw)].append(position)
        self._next = len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._positions

    def append(self, key: Hashable, raw: Raw) -> None:
        self._positions[key].append(self._next)
        self._entries[self._next] = raw
        self._next += 1

    def remove(self, keys: Iterable[Hashable]) -> bool:
        """Remove all entries with these keys; returns whether there was one."""
        found = [position for key in keys for position in self._positions.pop(key, ())]
        for position in found:
            del self._entries[position]
        return bool(found)

    def raws(self) -> list[Raw]:
        return list(self._entries.values())


class NumberedEntries(Mapping[int, T], Generic[T]):
    """Entries with an id each, such as schemas, in the order of the document; each is read when it is needed.

    Their shapes are equal if the entries are equal but for their ids. The ids must be unique.
    """

    def __init__(
        self,
        entries: Iterable[Raw],
        *,
        id_of: Callable[[Raw], int],
        shape_of: Callable[[Raw], Hashable],
        read: Callable[[Raw], T],
    ) -> None:
        self._raws = {id_of(raw): raw for raw in entries}
        self._shape_of = shape_of
        self._read = read
        self._values: dict[int, T] = {}
        # a heap whose top is the highest id, negated; removed ids leave it when they come to the top
        self._negative_ids = [-each for each in self._raws]
        heapify(self._negative_ids)

    def __getitem__(self, identifier: int) -> T:
        if identifier not in self._values:
            self._values[identifier] = self._read(self._raws[identifier])
        return self._values[identifier]

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._raws

    def __iter__(self) -> Iterator[int]:
        return iter(self._raws)

    def __len__(self) -> int:
        return len(self._raws)

    def raw(self, identifier: int) -> Raw:
        return self._raws[identifier]

    def raws(self) -> list[Raw]:
        return list(self._raws.values())

    def find_equal(self, shape: Hashable) -> int | None:
        """The id of the first entry with this shape, or None."""
        return next(iter(self._by_shape.get(shape, ())), None)

    def next_id(self, first: int) -> int:
        """The id after the highest one, or `first` if that is higher."""
        while self._negative_ids and -self._negative_ids[0] not in self._raws:
            heappop(self._negative_ids)
        return max(first, 1 - self._negative_ids[0]) if self._negative_ids else first

    def add(self, identifier: int, value: T, raw: Raw, *, shape: Hashable) -> None:
        """Append an entry."""
        self._shapes[identifier] = shape
        self._by_shape[shape][identifier] = None
        self._values[identifier] = value
        self._raws[identifier] = raw
        heappush(self._negative_ids, -identifier)

    def remove(self, identifiers: Iterable[int]) -> None:
        """Remove the entries with these ids, as far as they exist."""
        for identifier in identifiers:
            self._raws.pop(identifier, None)
            self._values.pop(identifier, None)
            if "_shapes" in self.__dict__ and identifier in self._shapes:
                del self._by_shape[self._shapes.pop(identifier)][identifier]

    @cached_property
    def _shapes(self) -> dict[int, Hashable]:
        return {identifier: self._shape_of(raw) for identifier, raw in self._raws.items()}

    @cached_property
    def _by_shape(self) -> defaultdict[Hashable, dict[int, None]]:
        found: defaultdict[Hashable, dict[int, None]] = defaultdict(dict)
        for identifier, shape in self._shapes.items():
            found[shape][identifier] = None
        return found
