"""The contract of object storage as the catalog needs it: whole small files, never data files."""

from collections.abc import Iterator
from typing import Protocol


class StorageError(Exception):
    """The store refused or failed; the message is one sentence for a person."""


class OutOfReach(StorageError):
    """The location lies outside the profile's base, by its text or through a link."""


class FileMissing(StorageError):
    """No file lies at the location."""


class FileTaken(StorageError):
    """A file lies at the location already."""


class StorageFull(StorageError):
    """The store has no room left."""


class Storage(Protocol):
    """One warehouse's storage. Locations are absolute URIs with the profile's scheme, without a trailing slash."""

    def write_new(self, location: str, content: bytes) -> None:
        """Write a file that survives a crash once this returns, or leave nothing; FileTaken when one is there."""
        ...

    def read(self, location: str, *, limit: int) -> bytes:
        """The whole file. FileMissing when there is none, StorageError when it is larger than `limit` bytes."""
        ...

    def delete(self, location: str) -> None:
        """Remove one file; a missing one is no error."""
        ...

    def is_known_missing(self, location: str) -> bool:
        """Whether the store can tell without a request to a server that no file lies at `location`."""
        ...

    def is_empty(self, location: str) -> bool:
        """Whether no file lies below `location`."""
        ...

    def delete_below(self, location: str) -> Iterator[str]:
        """Remove every file below `location` and empty directories with them; yields each removed file's location."""
        ...

    def nearest_folder(self, location: str) -> str:
        """The innermost folder that is there already: `location` or one around it; stores without folders: itself."""
        ...

    def remove_empty(self, location: str, *, inside: str) -> None:
        """Remove the folder `location` and those around it that lie in `inside`, as far as nothing is in them."""
        ...
