"""A warehouse in a directory, for one machine or a file system that all engines share."""

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Self

from lakewarden import board
from lakewarden.storage import local_removal
from lakewarden.storage.client_access import AccessRequest, ClientAccess
from lakewarden.storage.interface import FileMissing, FileTaken, OutOfReach, StorageError, StorageFull
from lakewarden.storage.local_removal import folder_in, opened
from lakewarden.storage.local_uris import SCHEME, local_path
from lakewarden.storage.removal import Found, Removed

TRIES = 5

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def _translated(location: str, *, missing: str | None = None) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(missing or f"No file at {location}") from error
    except FileExistsError as error:
        raise FileTaken(f"A file already exists at {location}") from error
    except OSError as error:
        if error.errno in _FULL:
            board.current().note_full(int(time.monotonic() * 1000))
            raise StorageFull(f"No space left to write {location}: free space on the warehouse's disk") from error
        raise StorageError(f"The warehouse's storage failed at {location}: {error.strerror}") from error


class LocalStorage:
    """Reaches nothing outside the base path, symbolic links included."""

    def __init__(self, base_path: str) -> None:
        self._base = Path(base_path)

    def write_new(self, location: str, content: bytes) -> None:
        *folders, name = self._parts(location)
        with _translated(location):
            for _ in range(TRIES):  # a purge beside this takes a folder away while it is empty
                with (
                    suppress(FileNotFoundError),
                    _Making() as making,
                    self._opened(location, folders, step=making.step) as folder,
                ):
                    return _write_synced(folder, name, content, above=making.changed)
                _make_directories(self._base)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def read(self, location: str, *, limit: int) -> bytes:
        path = self._path(location)
        with _translated(location), open(path, "rb", opener=_never_a_link) as file:
            is_larger = os.fstat(file.fileno()).st_size > limit
            content = b"" if is_larger else file.read(limit + 1)
        if is_larger or len(content) > limit:
            raise StorageError(f"The file {location} is larger than {limit} bytes")
        return content

    def delete(self, location: str) -> None:
        *folders, name = self._path(location).relative_to(self._base).parts
        # by handles: a link that is put in the way leads nowhere
        with _translated(location), suppress(FileNotFoundError), opened(str(self._base), folders) as folder:
            os.unlink(name, dir_fd=folder)

    def is_known_missing(self, location: str) -> bool:
        try:
            os.stat(local_path(location))  # noqa: PTH116 each load asks: a Path costs ten times the call
        except FileNotFoundError:
            return True
        except OSError:
            return False  # it cannot be reached, which is not to say that it is gone
        return False

    def is_empty(self, location: str, *, since: datetime | None = None) -> bool:
        path = self._path(location)
        with _translated(location):
            # anything that is not a directory, such as a link, counts as content
            if not os.path.lexists(path):
                return True
            return path.is_dir() and not path.is_symlink() and _holds_nothing(path, since=since)

    def survey(self, location: str, *, within: str) -> Iterator[Found]:
        place, kept = self._places(location, within)
        with _translated(location, missing=f"The warehouse's directory {self._base} does not exist: is it mounted?"):
            yield from local_removal.survey(str(self._base), place, kept=len(kept))

    def folders(self, location: str) -> Iterator[str]:
        place = self._parts(location)
        with _translated(location, missing=f"The warehouse's directory {self._base} does not exist: is it mounted?"):
            yield from local_removal.folders(str(self._base), place)

    def remove(self, found: Sequence[Found], *, within: str, at_once: int) -> Removed:
        return local_removal.remove(str(self._base), self._parts(within), found, at_once=at_once)

    def ensure_there(self) -> None:
        with _translated(str(self._base), missing=f"The warehouse's directory {self._base} does not exist"):
            if not any(self._base.iterdir()):
                raise StorageError(f"The warehouse's directory {self._base} is empty: is it mounted?")

    def client_access(self, request: AccessRequest) -> ClientAccess:  # noqa: ARG002 as the operating system lets engines
        return ClientAccess()

    def nearest_folder(self, location: str) -> str:
        path = Path(local_path(location))
        return SCHEME + str(next(folder for folder in (path, *path.parents) if os.path.lexists(folder)))

    def make_folder(self, location: str) -> None:
        folders = self._parts(location)
        with _translated(location):
            _make_directories(self._base)
            with self._opened(location, folders, step=_made):
                pass

    def remove_empty(self, location: str, *, inside: str) -> None:
        path, border = Path(local_path(location)), Path(local_path(inside))
        for folder in (path, *path.parents):
            if folder == border or not folder.is_relative_to(border):
                return
            try:
                folder.rmdir()
            except OSError:
                return  # something is in it, or somebody was faster

    def _places(self, location: str, within: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the folders that lead from the base to each; StorageError unless one is really in the other."""
        place, kept = self._parts(location), self._parts(within)
        if len(place) <= len(kept) or place[: len(kept)] != kept:
            whole = "the whole warehouse" if not place else f"not below {within}"
            raise StorageError(f"{location} is {whole}: it is never deleted")
        return place, kept

    def _parts(self, location: str) -> tuple[str, ...]:
        path = Path(local_path(location))
        if not path.is_relative_to(self._base):
            raise OutOfReach(f"{location} is outside the warehouse's directory")
        return path.relative_to(self._base).parts

    @contextmanager
    def _opened(
        self, location: str, folders: Sequence[str], *, step: Callable[[int, str], int] = folder_in
    ) -> Iterator[int]:
        """A handle of the folder of `location`: a link that is put in the way leads nowhere. OutOfReach as `_path`."""
        try:
            with opened(str(self._base), folders, step=step) as folder:
                yield folder
        except OSError as error:
            if error.errno in _NO_FOLDER:
                self._path(location)  # says so if it is a link
            raise

    def _path(self, location: str) -> Path:
        """The path of a `file://` URI. Raises OutOfReach if it is outside of the base path or reached through a link.

        Links inside the base are not followed, because they may lead to the files of another table.
        """
        path = Path(local_path(location))
        if not path.is_relative_to(self._base):
            raise OutOfReach(f"{location} is outside the warehouse's directory")
        base = Path(os.path.realpath(self._base))
        if Path(os.path.realpath(path.parent)) != (base / path.relative_to(self._base)).parent:
            raise OutOfReach(f"{location} is reached through a link; links are not followed")
        if not Path(os.path.realpath(path)).is_relative_to(base):
            raise OutOfReach(f"{location} leads out of the warehouse's directory")
        return path


def _never_a_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _holds_nothing(top: Path, *, since: datetime | None) -> bool:
    """No file and no link in a directory, or none before `since`; what cannot be looked into raises its OSError."""
    for folder, folders, names in os.walk(top, onerror=_raise_unless_gone):
        found = [Path(folder, name) for name in names] + _links(folder, folders)
        if found and (since is None or any(each.lstat().st_mtime < since.timestamp() for each in found)):
            return False
    return True


def _links(folder: str, folders: list[str]) -> list[Path]:
    """The links to directories in a directory: whoever walks does not follow them."""
    return [path for path in (Path(folder, name) for name in folders) if path.is_symlink()]


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _make_directories(path: Path) -> None:
    """Make `path` and what is missing above it, so that all of it survives a crash."""
    if path.exists():
        return
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _sync_directory(folder.parent)


def _made(folder: int, name: str) -> int:
    """As `folder_in`; one that is not there is made, so that it survives a crash."""
    try:
        return folder_in(folder, name)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        os.fsync(folder)
        return folder_in(folder, name)


class _Making:
    """Makes the folders on the way to a file that are missing, and keeps handles of those in which it made one.

    They are flushed together after the file: the first flush then writes all of it to the disk, and the others find
    nothing left to do.
    """

    def __init__(self) -> None:
        self.changed: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.changed:
            os.close(each)

    def step(self, folder: int, name: str) -> int:
        """As `folder_in`."""
        try:
            return folder_in(folder, name)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            self.changed.append(os.dup(folder))
            return folder_in(folder, name)


def _write_synced(folder: int, name: str, content: bytes, *, above: Sequence[int]) -> None:
    """Write a file under its final name: no request learns of it before it is complete and durable.

    Writing to a temporary name and linking it afterwards would need one more flush to the disk. `above` are the folders
    above it in which something was made.
    """
    descriptor = os.open(name, _NEW, 0o666, dir_fd=folder)
    try:
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.fsync(folder)
        for each in reversed(above):
            os.fsync(each)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        raise


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
