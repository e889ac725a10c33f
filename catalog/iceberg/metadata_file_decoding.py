"""Decodes metadata files of other writers: decompresses with a limit, and checks that it is one JSON object."""

import zlib
from collections.abc import Callable
from typing import TypeVar

from catalog.iceberg import wire
from catalog.iceberg.wire import Members
from lakewarden.errors import BadRequest, ValidationFailed

M = TypeVar("M")
_GZIP_MAGIC = b"\x1f\x8b"


def length(raw: bytes) -> int:
    """The uncompressed length of a file, in bytes; too small if the file has several gzip members."""
    return int.from_bytes(raw[-4:], "little") if raw[:2] == _GZIP_MAGIC else len(raw)


def open_file(raw: bytes, read: Callable[[Members], M], what: str) -> M:
    """Decode a file and read its members. Raises ValidationFailed for everything that is wrong with it."""
    try:
        text = _unpacked(raw).removeprefix(b"\xef\xbb\xbf")
        wire.check_text(text, "the file")
        return read(wire.members(text, "the file"))
    except BadRequest as error:
        raise ValidationFailed(f"Invalid {what} metadata file: {error.message}") from error


def _unpacked(raw: bytes) -> bytes:
    if raw[:2] != _GZIP_MAGIC:
        return raw
    most = max(length(raw), len(raw))  # the length that the file claims, which the caller has checked
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(raw, most + 1)
    except zlib.error as error:
        raise BadRequest(f"it is not a whole gzip file: {error}") from error
    if len(text) > most or not unpacker.eof:
        raise BadRequest("it is not a whole gzip file: it ends too early, or is longer than it says")
    return text
