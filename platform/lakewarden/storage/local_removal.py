"""Finds and removes everything below a folder, by handles of folders: a link cannot lead it to another place.

Only `LocalStorage` calls this. Folders are opened one by one, each inside the one before, and never through a link:
what is checked is what is used.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path

from lakewarden.storage.interface import OutOfReach, StorageError
from lakewarden.storage.removal import Found, Removed

MAX_DEPTH = 100  # each level of a walk holds two of the process's files open

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
_SOMETHING_ELSE = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ELOOP, errno.EISDIR}


def folder_in(folder: int, name: str) -> int:
    """A handle of the folder `name` in `folder`. Raises OSError: ENOTDIR or ELOOP when it is a link."""
    return os.open(name, _OPEN, dir_fd=folder)


@contextmanager
def opened(base: str, parts: Sequence[str], *, step: Callable[[int, str], int] = folder_in) -> Iterator[int]:
    """A handle of the folder `parts` below `base`, got step by step; raises as `step`."""
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            inner = step(folder, part)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def survey(base: str, parts: Sequence[str], *, kept: int) -> Iterator[Found]:
    """All that is at and below `base`/`parts`, in the order of removal; paths are relative to its first `kept` parts.

    When nothing is left there: the folders around it, up to those that stay. Nothing is collected: memory and open
    files depend on the depth alone. What comes and goes meanwhile may be missed. Raises OSError, and OutOfReach when
    the way leads through a link.
    """
    with _below_no_link(base, parts):
        try:
            with opened(base, parts[:-1]) as folder:
                os.close(os.open(parts[-1], _OPEN, dir_fd=folder))  # a link or a file is none of what is below
                yield from _entry(folder, parts[-1], "/".join(parts[kept:]), 0, is_folder=True)
        except FileNotFoundError:
            os.close(os.open(base, os.O_RDONLY | os.O_DIRECTORY))  # the store itself must be there
            yield from _around(base, parts, kept=kept)


def folders(base: str, parts: Sequence[str]) -> Iterator[str]:
    """The names of the folders directly in `base`/`parts`; raises as `survey`."""
    with _below_no_link(base, parts):
        try:
            with opened(base, parts) as folder, os.scandir(folder) as entries:
                yield from (each.name for each in entries if each.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            os.close(os.open(base, os.O_RDONLY | os.O_DIRECTORY))  # the store itself must be there


@contextmanager
def _below_no_link(base: str, parts: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise
        place = "/".join((base, *parts))
        raise OutOfReach(f"{place} is not a folder, or is reached through a link; links are not followed") from error


def remove(base: str, parts: Sequence[str], found: Sequence[Found], *, at_once: int) -> Removed:
    """Remove them below `base`/`parts`: files first, `at_once` at a time, then folders in their order."""
    files = [each for each in found if not each.is_folder]
    groups = [list(group) for _, group in groupby(files, key=_parent)]
    longest = max(1, -(-len(files) // at_once))
    chunks = [group[at : at + longest] for group in groups for at in range(0, len(group), longest)]

    def clear(chunk: Sequence[Found]) -> Removed:
        return _in_parent(base, parts, chunk, os.unlink)

    if at_once == 1 or len(chunks) == 1:
        cleared = [clear(chunk) for chunk in chunks]
    else:
        with ThreadPoolExecutor(at_once, thread_name_prefix="purge") as threads:
            cleared = list(threads.map(clear, chunks))
    if not any(each.error for each in cleared):
        folders = groupby((each for each in found if each.is_folder), key=_parent)
        cleared += [_in_parent(base, parts, list(group), os.rmdir) for _, group in folders]
    return Removed.joined(cleared)


def _in_parent(base: str, parts: Sequence[str], found: Sequence[Found], way: Callable[..., None]) -> Removed:
    """Remove things of one folder, in their order."""
    outcome = Removed()
    try:
        with opened(base, [*parts, *found[0].path.split("/")[:-1]]) as folder:
            for each in found:
                _remove_one(folder, each, way, outcome)
    except FileNotFoundError:
        if Path(base).is_dir():
            outcome.missing += found
        else:
            outcome.error = StorageError(f"The warehouse's directory {base} does not exist")
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            outcome.error = StorageError(f"{found[0].path} cannot be removed: {error.strerror}")
    return outcome


def _remove_one(folder: int, found: Found, way: Callable[..., None], outcome: Removed) -> None:
    name = found.path.rpartition("/")[2]
    try:
        if _version(os.stat(name, dir_fd=folder, follow_symlinks=False)) == found.version:
            way(name, dir_fd=folder)
            outcome.gone.append(found)
    except FileNotFoundError:
        outcome.missing.append(found)
    except OSError as error:
        if error.errno not in _SOMETHING_ELSE:
            raise


def _below(folder: int, path: str, depth: int) -> Iterator[Found]:
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            yield from _entry(folder, entry.name, f"{path}/{entry.name}", depth, is_folder=is_folder)


def _entry(parent: int, name: str, path: str, depth: int, *, is_folder: bool) -> Iterator[Found]:
    if not is_folder:
        with suppress(FileNotFoundError):
            yield _found(path, os.stat(name, dir_fd=parent, follow_symlinks=False))
        return
    if depth > MAX_DEPTH:
        raise StorageError(f"{path} is more than {MAX_DEPTH} folders deep: remove it manually")
    try:
        folder = os.open(name, _OPEN, dir_fd=parent)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in _NO_FOLDER:
            return  # a link or file by now: the next survey sees what it is
        raise
    try:
        yield from _below(folder, path, depth + 1)
        yield _found(path, os.fstat(folder))
    finally:
        os.close(folder)


def _around(base: str, parts: Sequence[str], *, kept: int) -> Iterator[Found]:
    for length in range(len(parts) - 1, kept, -1):
        with suppress(FileNotFoundError), opened(base, parts[:length]) as folder:
            yield _found("/".join(parts[kept:length]), os.fstat(folder))


def _found(path: str, state: os.stat_result) -> Found:
    is_folder = stat.S_ISDIR(state.st_mode)
    return Found(path, 0 if is_folder else state.st_size, _version(state), is_folder)


def _version(state: os.stat_result) -> str:
    """A folder stays the same when its content goes."""
    same = (state.st_dev, state.st_ino)
    more = () if stat.S_ISDIR(state.st_mode) else (state.st_size, state.st_mtime_ns)
    return "-".join(f"{number:x}" for number in (*same, *more))


def _parent(found: Found) -> str:
    return found.path.rpartition("/")[0]
