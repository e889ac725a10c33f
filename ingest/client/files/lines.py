"""Lines of a file, of a gzip file or of standard input, each with its place."""

import gzip
import hashlib
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from ingest.client.errors import IngestError, NotResumable, WrongLine

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes. The gateway's limit for one event is lower; a Debezium message with its schema is longer than its event."""

_GZIP = b"\x1f\x8b"
_CHUNK = 1024 * 1024


class Place(msgspec.Struct, frozen=True):
    """What was read: `lines` lines, `offset` bytes (unpacked); the last line begins at `begin` and has this digest."""

    lines: int = 0
    offset: int = 0
    begin: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """`number` counts from 1; `end` is the offset of the byte behind it, in what is read (unpacked)."""

    number: int
    content: bytes
    end: int

    @property
    def place(self) -> Place:
        """The place behind it."""
        return Place(self.number, self.end, self.end - len(self.content), _digest(self.content))


class Source:
    """An input that is read once, from a place on; `consumed` of `size` bytes as they lie on the disk."""

    def __init__(self, raw: BinaryIO, *, size: int | None) -> None:
        self._raw, self.size = raw, size
        is_packed = size is not None and _head(raw) == _GZIP
        self._stream: BinaryIO = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if is_packed else raw
        self._is_packed = is_packed

    @property
    def consumed(self) -> int:
        return self._raw.tell()

    def lines(self, start: Place) -> Iterator[Line]:
        """All lines that are not blank. Raises `WrongLine`, `NotResumable` and `IngestError`."""
        self._skip(start.begin)
        if start.digest and _digest(self._read(start.lines)) != start.digest:
            raise NotResumable(f"Line {start.lines} is not the one that was sent before: the file is another one.")
        number, offset = start.lines, start.offset
        while content := self._read(number + 1):
            number, offset = number + 1, offset + len(content)
            if content.strip():
                yield Line(number, content, offset)

    def _read(self, number: int) -> bytes:
        try:
            content = self._stream.readline(LONGEST_LINE + 1)
        except (OSError, EOFError) as error:
            raise IngestError(f"line {number}: the input cannot be read: {error}") from error
        if len(content) > LONGEST_LINE:
            raise WrongLine(number, f"it is longer than {LONGEST_LINE:,} bytes. Each line must hold one JSON object.")
        return content

    def _skip(self, offset: int) -> None:
        if not self._is_packed:
            if offset:
                self._stream.seek(offset)
            return
        left = offset
        while left > 0:
            read = len(self._stream.read(min(left, _CHUNK)))
            if not read:
                raise NotResumable(f"The file is shorter than what was sent of it before ({offset:,} bytes).")
            left -= read


def _digest(content: bytes) -> str:
    return hashlib.sha256(content.rstrip(b"\r\n")).hexdigest()


def _head(stream: BinaryIO) -> bytes:
    head = stream.read(2)
    stream.seek(0)
    return head


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    try:
        with path.open("rb") as raw:
            yield Source(raw, size=path.stat().st_size)
    except IsADirectoryError:
        raise IngestError(f"{path} is a directory; give a file, or - for standard input.") from None
    except OSError as error:
        raise IngestError(f"{path} cannot be read: {error.strerror}.") from error


def ticking(lines: Iterator[Line], *, every_s: float) -> Iterator[Line | None]:
    """The same lines, and None whenever none has come for `every_s` seconds, so that a reader is never stuck."""
    ready: queue.Queue[Line | BaseException | None] = queue.Queue(maxsize=10_000)

    def read() -> None:
        try:
            for line in lines:
                ready.put(line)
            ready.put(None)
        except BaseException as error:  # noqa: BLE001  raised again where it is read
            ready.put(error)

    threading.Thread(target=read, name="read input", daemon=True).start()
    while True:
        try:
            item = ready.get(timeout=every_s)
        except queue.Empty:
            yield None
            continue
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item
        yield item
