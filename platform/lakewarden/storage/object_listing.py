"""What lists and removes the objects of a store, page by page; each cloud has its own."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from lakewarden.storage.object_faults import Fault, StoreFailed

_MOST_EMPTY_PAGES: Final = 1000
"""In a row: stores may answer with some."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An object, or an earlier version of one, or an upload that was never finished: whatever a purge removes.

    `version` differs if the object has been replaced meanwhile.
    """

    key: str
    size: int
    version: str
    changed_at: datetime

    @property
    def is_folder(self) -> bool:
        """Whether it only marks a folder, as Hadoop's engines write it."""
        return self.size == 0 and self.key.endswith("/")


class Pages:
    """Bounds a list: a store could go on for ever to say that there is more."""

    def __init__(self, within_s: float | None) -> None:
        self._until = None if within_s is None else time.monotonic() + within_s
        self._empty = 0

    def turn(self, *, is_empty: bool) -> None:
        """Called for each page that is not the last one. Raises StoreFailed when there have been too many."""
        self._empty = self._empty + 1 if is_empty else 0
        if self._empty > _MOST_EMPTY_PAGES:
            raise StoreFailed(Fault(200, "EndlessList"))
        if self._until is not None and time.monotonic() > self._until:
            raise StoreFailed(Fault(is_timeout=True))


@dataclass(frozen=True, slots=True)
class NotRemoved:
    key: str
    code: str
    """As the store names the reason."""


class Listing(Protocol):
    """Each method may raise StoreFailed."""

    def below(self, prefix: str, *, within_s: float | None = None) -> Iterator[Entry]:
        """The objects whose keys start with `prefix`, in the order of their keys' bytes; it streams.

        Raises StoreFailed when the list has not ended after `within_s` (None: it may take long).
        """
        ...

    def inside(self, prefix: str) -> Iterator[str]:
        """What keys start with that start with `prefix`, up to the next slash: each once, with its slash."""
        ...

    def everything(self, prefix: str) -> Iterator[Entry]:
        """As `below`, and what else a purge has to remove."""
        ...

    def between(self, first: str, last: str) -> Iterator[Entry]:
        """Of `everything`: from the key `first` to the key `last`, both included."""
        ...

    def remove(self, entries: Sequence[Entry]) -> list[NotRemoved]:
        """Remove up to 1,000 entries in one request where the store can; missing ones are not an error."""
        ...
