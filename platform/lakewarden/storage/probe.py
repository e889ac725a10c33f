"""Proves a storage with small files, and the credentials that engines receive. For the validation of warehouses."""

from collections.abc import Callable
from contextlib import nullcontext, suppress

from lakewarden.ids import new_id
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess, ClientRoutes, Delegation
from lakewarden.storage.interface import AccessDenied, FileMissing, Storage, StorageError
from lakewarden.storage.profile import StorageProfile

_CONTENT = b"probe"
_NO_ROUTES = ClientRoutes("", "", "")


class Probe:
    """A file of its own directly in `location`; each step raises StorageError.

    `clean_up` follows in any case; with `folders` it also removes those that were made for the file.
    """

    def __init__(self, store: Storage, location: str) -> None:
        self._store = store
        self._location = location
        self.file = f"{location}/.lakewarden-probe-{new_id()}"
        self._before = store.nearest_folder(location)
        self._files = _Files(store)

    def write_and_read(self) -> None:
        self._files.write_and_read(self._store, self.file)

    def clean_up(self, *, folders: bool) -> None:
        self._files.remove()
        if folders:
            self._store.remove_empty(self._location, inside=self._before)


class EngineProbe:
    """What an engine can do with the credentials for one table: a place beside `file`, which `store` has written.

    Each step raises StorageError. `clean_up`, which the server does itself, follows in any case.
    """

    def __init__(self, profile: StorageProfile, store: Storage, file: str) -> None:
        self._profile = profile
        self._store = store
        self._file = file
        self._table = f"{file}-table"
        self._files = _Files(store)
        self._engine: Storage | None = None

    def issue(self) -> bool:
        """Whether the storage issues credentials for a writer."""
        access = self._access(AccessLevel.WRITE)
        self._engine = self._profile.open_as_engine(access) if access.credentials else None
        return self._engine is not None

    def write_and_read(self) -> None:
        self._files.write_and_read(self._issued, f"{self._table}/file")
        if self._issued.is_empty(self._table):
            raise StorageError(f"The file that was written below {self._table} is not listed there")

    def try_to_leave(self) -> None:
        """Raises StorageError if the store allows something outside of the table, or a reader to write in it."""
        outside, reader = self._issued, self._profile.open_as_engine(self._access(AccessLevel.READ))
        beside = f"{self._table}2/file"
        tries: dict[str, Callable[[], object]] = {
            "write a file beside their table": lambda: self._files.write(outside, beside),
            "read a file beside their table": lambda: outside.read(self._file, limit=len(_CONTENT)),
            "list the folder around their table": lambda: outside.is_empty(self._table.rpartition("/")[0]),
            "write a file although they are for reading": lambda: self._files.write(reader, f"{self._table}/by-reader"),
        }
        allowed = [what for what, action in tries.items() if not _is_denied(what, action)]
        if not self._stays_though_deleted(outside):
            allowed.append("delete a file beside their table")
        if allowed:
            raise StorageError(
                f"Credentials that the store issues for one table can also {', '.join(allowed)}: it does not enforce "
                "what they are issued for. Switch vended credentials off for this warehouse, or use another store"
            )

    def clean_up(self) -> None:
        self._files.remove()

    def _stays_though_deleted(self, outside: Storage) -> bool:
        """Deleting may be answered with success and have no effect, so the file is looked at."""
        _is_denied("delete", lambda: outside.delete(self._file))
        try:
            self._store.read(self._file, limit=len(_CONTENT))
        except FileMissing:
            return False
        return True

    def _access(self, level: AccessLevel) -> ClientAccess:
        wanted = frozenset({Delegation.VENDED_CREDENTIALS})
        return self._store.client_access(AccessRequest(self._table, level, wanted, _NO_ROUTES))

    @property
    def _issued(self) -> Storage:
        assert self._engine is not None  # noqa: S101 `issue` comes first
        return self._engine


class _Files:
    """What was written, and what a failed write may have left."""

    def __init__(self, owner: Storage) -> None:
        self._owner = owner
        self._is_there: dict[str, bool] = {}

    def write(self, store: Storage, file: str) -> None:
        self._is_there[file] = False
        store.write_new(file, _CONTENT)
        self._is_there[file] = True

    def write_and_read(self, store: Storage, file: str) -> None:
        self.write(store, file)
        if store.read(file, limit=len(_CONTENT)) != _CONTENT:
            raise StorageError(f"The content read from {file} is not what was written")

    def remove(self) -> None:
        """Raises StorageError for a file that is there, and cannot be removed."""
        for file, is_there in self._is_there.items():
            with nullcontext() if is_there else suppress(StorageError):
                self._owner.delete(file)


def _is_denied(what: str, action: Callable[[], object]) -> bool:
    """Raises StorageError when it cannot be said: another failure is not a refusal."""
    try:
        action()
    except AccessDenied:
        return True
    except StorageError as error:
        raise StorageError(f"Whether the issued credentials can {what} could not be tried: {error}") from error
    return False
