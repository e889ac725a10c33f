"""A warehouse in a directory, for one machine or a file system that all engines share."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakewarden.storage.interface import FileMissing, FileTaken, StorageError, StorageFull
from lakewarden.storage.profiles import LocalProfile, local_path

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def _translated(location: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(f"No file at {location}") from error
    except FileExistsError as error:
        raise FileTaken(f"A file lies at {location} already") from error
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull(f"No space left to write {location}: free space on the warehouse's disk") from error
        raise StorageError(f"The warehouse's storage failed at {location}: {error.strerror}") from error


class LocalStorage:
    """Reaches nothing outside the profile's base path, symbolic links included."""

    def __init__(self, profile: LocalProfile) -> None:
        self._base = Path(profile.base_path)

    def write_new(self, location: str, content: bytes) -> None:
        path = self._path(location)
        with _translated(location):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            try:
                _write_synced(temporary, content)
                os.link(temporary, path)
            finally:
                with suppress(FileNotFoundError):
                    temporary.unlink()
            _sync_directory(path.parent)

    def read(self, location: str, *, limit: int) -> bytes:
        with _translated(location), self._path(location).open("rb") as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise StorageError(f"The file {location} is larger than {limit} bytes")
        return content

    def delete(self, location: str) -> None:
        with _translated(location), suppress(FileNotFoundError):
            self._path(location).unlink()

    def is_empty(self, location: str) -> bool:
        with _translated(location):
            return next(_files(self._path(location)), None) is None

    def delete_below(self, location: str) -> Iterator[str]:
        top = self._path(location)
        if top == self._base:
            raise StorageError(f"{location} is the whole warehouse: it is never deleted")
        with _translated(location):
            for folder, _, names in os.walk(top, topdown=False):
                for name in names:
                    file = Path(folder, name)
                    file.unlink(missing_ok=True)
                    yield f"{location}/{file.relative_to(top)}"
                with suppress(OSError):  # somebody wrote into it in between: the next run takes it
                    Path(folder).rmdir()

    def _path(self, location: str) -> Path:
        """The path of a `file://` URI; StorageError when it leaves the base path."""
        path = Path(local_path(location))
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._base))
        if not path.is_relative_to(self._base) or not inside:
            raise StorageError(f"{location} is outside the warehouse's directory")
        return path


def _files(top: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(top):
        for name in names:
            yield Path(folder, name)


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
