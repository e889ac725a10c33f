"""What lists and removes the objects of a store, page by page; each cloud has its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


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


@dataclass(frozen=True, slots=True)
class NotRemoved:
    key: str
    code: str
    """As the store names the reason."""


class Listing(Protocol):
    """Each method may raise StoreFailed, or what obstore raises."""

    def below(self, prefix: str) -> Iterator[Entry]:
        """The objects whose keys start with `prefix`, in the order of their keys' bytes; it streams."""
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
