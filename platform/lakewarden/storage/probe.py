"""Proves a storage: a small file is written, read and removed. For the validation of warehouses."""

from lakewarden.ids import new_id
from lakewarden.storage.interface import Storage, StorageError

_CONTENT = b"probe"


class Probe:
    """A file of its own directly in `location`; each step raises StorageError.

    `clean_up` follows in any case; with `folders` it also removes those that were made for the file.
    """

    def __init__(self, store: Storage, location: str) -> None:
        self._store = store
        self._location = location
        self._file = f"{location}/.lakewarden-probe-{new_id()}"
        self._before = store.nearest_folder(location)
        self._is_written = False

    def write_and_read(self) -> None:
        self._store.write_new(self._file, _CONTENT)
        self._is_written = True
        if self._store.read(self._file, limit=len(_CONTENT)) != _CONTENT:
            raise StorageError(f"The content read from {self._file} is not what was written")

    def clean_up(self, *, folders: bool) -> None:
        if self._is_written:
            self._store.delete(self._file)
        if folders:
            self._store.remove_empty(self._location, inside=self._before)
