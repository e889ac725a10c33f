"""The files of one table for `preview_reader`: what lies below its location can be opened, and nothing else."""

import os
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakewarden.storage.local_removal import opened
from lakewarden.storage.local_uris import local_path

if TYPE_CHECKING:
    from console.preview_reader import Wanted

_STORES: Final = ("s3://", "s3a://", "s3n://")


class OutsideOfTable(Exception):
    """A file of the table is not below its location: whoever may read the table need not be allowed to read it."""

    def __init__(self, location: str) -> None:
        super().__init__(f"The file {location} is outside of the table's location, where a preview does not read")


class TableFiles(FileIO):
    """Opens what lies below the location, and writes nothing."""

    def __init__(self, wanted: "Wanted") -> None:
        super().__init__(properties={})
        self._below = wanted.location.rstrip("/") + "/"
        self._base = wanted.local_base
        self._store = None if self._base else PyArrowFileIO(dict(wanted.properties))

    def new_input(self, location: str) -> InputFile:
        if self._store is None:
            return LocalFile(location, base=str(self._base), below=local_path(self._below))
        path = location.partition("://")[2]
        # by its scheme the library chooses the store: files of the machine, or another cloud with keys of the machine
        is_store = location.startswith(_STORES)
        if not is_store or not path.startswith(self._below.partition("://")[2]) or ".." in path.split("/"):
            raise OutsideOfTable(location)
        return self._store.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        raise PermissionError(f"A preview writes nothing: {location}")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise PermissionError(f"A preview removes nothing: {location}")


class LocalFile(InputFile):
    """A file of a local warehouse, opened folder by folder: no link leads out of the table's folder."""

    def __init__(self, location: str, *, base: str, below: str) -> None:
        super().__init__(location)
        path = local_path(location)
        if not path.startswith(below):
            raise OutsideOfTable(location)
        self._base, self._parts = base, path.removeprefix(base).strip("/").split("/")

    def __len__(self) -> int:
        with self.open() as found:
            return os.fstat(found.fileno()).st_size  # type: ignore[attr-defined]

    def exists(self) -> bool:
        try:
            self.open().close()
        except FileNotFoundError:
            return False
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 PyIceberg's interface
        with opened(self._base, self._parts[:-1]) as folder:
            handle = os.open(self._parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        found: Any = os.fdopen(handle, "rb")
        return found  # type: ignore[no-any-return]


def table_files(wanted: "Wanted") -> FileIO:
    if wanted.local_base is None and not wanted.location.startswith(_STORES):
        raise ValueError("A preview reads local directories and S3 only")
    return TableFiles(wanted)
