"""The interface of storage, as the catalog needs it: whole small files, never data files."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from lakewarden.storage.client_access import AccessRequest, ClientAccess
from lakewarden.storage.removal import Found, Removed


class StorageError(Exception):
    """The storage refused or failed; the message is a sentence that may be shown to users."""


class OutOfReach(StorageError):
    """The location is outside of the profile's base, as written or through a link."""


class FileMissing(StorageError):
    """There is no file at the location."""


class FileTaken(StorageError):
    """There is a file at the location already."""


class AccessDenied(StorageError):
    """The store knows who asks, and does not allow it: the rights of the keys are too small."""


class StorageUnavailable(StorageError):
    """It cannot be used now, whatever is asked of it: it says nothing about files or locations.

    The same call may succeed later. Whether a write has happened is not known.
    """


class StorageSilent(StorageUnavailable):
    """A service did not answer at all, or not in time."""


class CredentialMissing(StorageUnavailable):
    """The secret store does not have the credential any more."""


class StorageBusy(StorageUnavailable):
    """Too many calls are waiting for the storage to answer."""


class StorageFull(StorageError):
    """The storage has no space left."""


class Storage(Protocol):
    """One warehouse's storage. Locations are absolute URIs, in any spelling that its profile knows."""

    def write_new(self, location: str, content: bytes) -> None:
        """Write a file that survives a crash once this returns, or leave nothing; FileTaken when one is there.

        A crash before it returns may leave a part of the file.
        """
        ...

    def read(self, location: str, *, limit: int) -> bytes:
        """The whole file. FileMissing when there is none, StorageError when it is larger than `limit` bytes."""
        ...

    def delete(self, location: str) -> None:
        """Remove one file; a missing one is not an error."""
        ...

    def is_known_missing(self, location: str) -> bool:
        """Whether the storage knows, without a request to a server, that there is no file at `location`."""
        ...

    def is_empty(self, location: str, *, since: datetime | None = None) -> bool:
        """Whether there is no file below `location`; with `since`, none that was last changed before that time."""
        ...

    def survey(self, location: str, *, within: str) -> Iterator[Found]:
        """All files below `location` and the folders that are left without them, in the order of removal.

        When nothing is left there: the folders around it, as far as they lie in `within`, which stays. Paths are
        relative to `within`. It streams, and may miss what comes or goes meanwhile. OutOfReach when the way there
        leads through a link; StorageError for the whole warehouse, and when the store is not there.
        """
        ...

    def folders(self, location: str) -> Iterator[str]:
        """The names of the folders directly in `location`, in any order; of files, links, and what is deeper: none.

        It streams, and may miss what comes or goes meanwhile; nothing there is no error. OutOfReach as `survey`, and
        StorageError when the store is not there.
        """
        ...

    def remove(self, found: Sequence[Found], *, within: str, at_once: int) -> Removed:
        """Remove what a survey found, `at_once` files at a time, unless it has been replaced meanwhile."""
        ...

    def ensure_there(self) -> None:
        """StorageError when the warehouse's place is missing, or is so empty that it may not be the right one."""
        ...

    def client_access(self, request: AccessRequest) -> ClientAccess:
        """The means by which an engine reaches the files below a location, and can do no more than the level says."""
        ...

    def nearest_folder(self, location: str) -> str:
        """The innermost folder that is there already: `location` or one around it; stores without folders: itself."""
        ...

    def make_folder(self, location: str) -> None:
        """Make `location` and the folders around it, in stores with folders: some engines write only where one is.

        OutOfReach as for a file.
        """
        ...

    def remove_empty(self, location: str, *, inside: str) -> None:
        """Remove the folder `location` and those around it that lie in `inside`, as far as nothing is in them."""
        ...
