"""A bounded file of records, each durable before it is acknowledged, that are read in order once."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, Self
from zlib import crc32

from lakewarden.ids import new_id_text

_MAGIC: Final = b"lwfb\x00\x00\x00\x01"
_HEADER: Final = Struct(">8sQ")  # magic, and the offset up to which records were replayed
_FRAME: Final = Struct(">II")  # length and checksum of the record behind it
SUFFIX: Final = ".fallback"


class FallbackFailed(Exception):
    """Nothing was kept; the message says why."""


class FallbackFull(FallbackFailed):
    """There is no room for more."""


def framed(record: bytes) -> bytes:
    return _FRAME.pack(len(record), crc32(record)) + record


class FallbackFile:
    """Locked: it belongs to this process until the process ends. Its methods block; one thread at a time uses it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._is_broken = False
        self.replayed, self.end = self._recover()

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Raises FallbackFailed."""
        path = folder / f"{new_id_text()}{SUFFIX}"  # by its name, the next process knows which was first
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(descriptor, _HEADER.pack(_MAGIC, _HEADER.size), 0)
            os.fsync(descriptor)
            _sync_folder(folder)
        except OSError as error:
            raise FallbackFailed(_said(error)) from error
        return cls(path, descriptor)

    @classmethod
    def adopt(cls, path: Path) -> Self | None:
        """The file of a process that has ended; None: it is in use. Raises FallbackFailed."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FallbackFailed(_said(error)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = path.exists()  # else it was removed by the process that held it before
        except BlockingIOError:
            is_ours = False
        if not is_ours:
            os.close(descriptor)
            return None
        return cls(path, descriptor)

    @property
    def waiting(self) -> int:
        """Bytes that were not replayed."""
        return self.end - self.replayed

    def append(self, frames: Sequence[bytes]) -> None:
        """All of them or nothing, durable. Raises FallbackFailed."""
        if self._is_broken:
            raise FallbackFailed("an earlier write has failed")
        content = b"".join(frames)
        try:
            written = 0
            while written < len(content):
                written += os.pwrite(self._descriptor, content[written:], self.end + written)
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._undo()
            raise FallbackFailed(_said(error)) from error
        self.end += len(content)

    def read(self, *, most: int) -> tuple[list[bytes], int]:
        """The next records, about `most` bytes of them, and the offset behind them."""
        records, offset = [], self.replayed
        for record, end in self._records(offset):
            records.append(record)
            offset = end
            if offset - self.replayed >= most:
                break
        return records, offset

    def all(self) -> Iterator[bytes]:
        """The records that were not replayed."""
        for record, _ in self._records(self.replayed):
            yield record

    def mark_replayed(self, offset: int) -> None:
        """Records before it are in the log. Raises FallbackFailed."""
        try:
            if offset == self.end:
                os.ftruncate(self._descriptor, _HEADER.size)
                offset = self.end = _HEADER.size
                self._is_broken = False
            os.pwrite(self._descriptor, _HEADER.pack(_MAGIC, offset), 0)
            os.fsync(self._descriptor)
        except OSError as error:
            raise FallbackFailed(_said(error)) from error
        self.replayed = offset

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def _records(self, offset: int) -> Iterator[tuple[bytes, int]]:
        while offset < self.end:
            length, _ = _FRAME.unpack(os.pread(self._descriptor, _FRAME.size, offset))
            begin = offset + _FRAME.size
            offset = begin + length
            yield os.pread(self._descriptor, length, begin), offset

    def _recover(self) -> tuple[int, int]:
        """Where to go on, and the end of the last whole record: what follows was never acknowledged."""
        size = os.fstat(self._descriptor).st_size
        head = os.pread(self._descriptor, _HEADER.size, 0)
        if len(head) < _HEADER.size or not head.startswith(_MAGIC):
            return _HEADER.size, _HEADER.size  # killed while it was made
        begin = _HEADER.unpack(head)[1]
        if begin > size:
            return _HEADER.size, _HEADER.size  # killed while all of it was removed
        offset = begin
        while offset + _FRAME.size <= size:
            length, checksum = _FRAME.unpack(os.pread(self._descriptor, _FRAME.size, offset))
            record = os.pread(self._descriptor, length, offset + _FRAME.size)
            if len(record) < length or crc32(record) != checksum:
                break
            offset += _FRAME.size + length
        if offset < size:
            os.ftruncate(self._descriptor, offset)  # or whole records behind it could appear after the next one
        return begin, offset

    def _undo(self) -> None:
        """After a failed write nobody knows what of it is on the disk."""
        try:
            os.ftruncate(self._descriptor, self.end)
            os.fsync(self._descriptor)
        except OSError:
            self._is_broken = True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _said(error: OSError) -> str:
    return error.strerror or type(error).__name__
