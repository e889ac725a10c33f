"""A warehouse in a directory, for one machine or a file system that all engines share."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakewarden.storage.interface import FileMissing, FileTaken, OutOfReach, StorageError, StorageFull
from lakewarden.storage.profiles import SCHEME, LocalProfile, local_path

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
            _make_directories(path.parent)
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

    def is_known_missing(self, location: str) -> bool:
        try:
            os.stat(local_path(location))  # noqa: PTH116 each load asks: a Path costs ten times the call
        except FileNotFoundError:
            return True
        except OSError:
            return False  # it cannot be reached, which is not to say that it is gone
        return False

    def is_empty(self, location: str) -> bool:
        path = self._path(location)
        with _translated(location):
            # what is no directory itself, a link for instance, is something that lies there
            return not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and _holds_nothing(path))

    def delete_below(self, location: str) -> Iterator[str]:
        top = self._path(location)
        if top == self._base:
            raise StorageError(f"{location} is the whole warehouse: it is never deleted")
        with _translated(location):
            for folder, folders, names in os.walk(top, topdown=False, onerror=_raise_unless_gone):
                for file in (*(Path(folder, name) for name in names), *_links(folder, folders)):
                    file.unlink(missing_ok=True)
                    yield f"{location}/{file.relative_to(top)}"
                with suppress(OSError):  # somebody wrote into it in between: the next run takes it
                    Path(folder).rmdir()

    def nearest_folder(self, location: str) -> str:
        path = Path(local_path(location))
        return SCHEME + str(next(folder for folder in (path, *path.parents) if os.path.lexists(folder)))

    def remove_empty(self, location: str, *, inside: str) -> None:
        path, border = Path(local_path(location)), Path(local_path(inside))
        for folder in (path, *path.parents):
            if folder == border or not folder.is_relative_to(border):
                return
            try:
                folder.rmdir()
            except OSError:
                return  # something is in it, or somebody was faster

    def _path(self, location: str) -> Path:
        """The path of a `file://` URI; OutOfReach when it leaves the base path."""
        path = Path(local_path(location))
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._base))
        if not path.is_relative_to(self._base) or not inside:
            raise OutOfReach(f"{location} is outside the warehouse's directory")
        return path


def _holds_nothing(top: Path) -> bool:
    """No file and no link in a directory; one that cannot be looked into raises its OSError."""
    walk = os.walk(top, onerror=_raise_unless_gone)
    return not any(names or _links(folder, folders) for folder, folders, names in walk)


def _links(folder: str, folders: list[str]) -> list[Path]:
    """The links to directories in a directory: whoever walks does not follow them."""
    return [path for path in (Path(folder, name) for name in folders) if path.is_symlink()]


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _make_directories(path: Path) -> None:
    """Make `path` and what is missing above it, so that all of it survives a crash."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _sync_directory(folder.parent)


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
