"""The lock of a data directory: a second `lakewarden dev` or `demo` fails and names the process that uses it."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Self

from standalone.errors import EmbeddedError


class DirectoryLock:
    """An exclusive lock on a data directory; the kernel releases it when the holder ends in any way."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "lock"
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock, or raise `EmbeddedError` with the holder's pid. The directory exists."""
        try:
            # children do not inherit it (PEP 446), so it is released when this process ends
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise EmbeddedError(
                f"The data directory {self._directory} cannot be used: {error.strerror}. "
                "Start as its owner or give another one with --data-dir."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise self._refused(error, holder) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock. The file stays: if it were removed, two processes could lock different files."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _refused(self, error: OSError, holder: str) -> EmbeddedError:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
            return EmbeddedError(
                f"Another Lakewarden (pid {holder}) is using {self._directory}: "
                f"stop it with `kill {holder}`, or give this one its own directory with --data-dir."
            )
        return EmbeddedError(
            f"The data directory {self._directory} cannot be locked: {error.strerror}. "
            "Give one on a local disk with --data-dir."
        )
