"""Opens the bytes of a metadata file that others wrote: gunzips, bounds, and checks that it is one JSON object."""

import zlib
from collections.abc import Callable
from typing import Final, TypeVar

from catalog.iceberg import wire
from catalog.iceberg.wire import Members
from lakewarden.errors import BadRequest, ValidationFailed

M = TypeVar("M")
MAX_BYTES: Final = 256 * 1024 * 1024
"""The longest document that is read, after decompression."""
_GZIP_MAGIC: Final = b"\x1f\x8b"


def open_file(raw: bytes, read: Callable[[Members], M], what: str) -> M:
    """Open a file and read its members; whatever is wrong comes out as one ValidationFailed."""
    try:
        text = _unpacked(raw).removeprefix(b"\xef\xbb\xbf")
        wire.check_text(text, "the file")
        return read(wire.members(text, "the file"))
    except BadRequest as error:
        raise ValidationFailed(f"Invalid {what} metadata file: {error.message}") from error


def _unpacked(raw: bytes) -> bytes:
    text = _gunzip(raw) if raw[:2] == _GZIP_MAGIC else raw
    if len(text) > MAX_BYTES:
        raise BadRequest(f"it is longer than {MAX_BYTES} bytes")
    return text


def _gunzip(raw: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(raw, MAX_BYTES + 1)
    except zlib.error as error:
        raise BadRequest(f"it is not a whole gzip file: {error}") from error
    if len(text) <= MAX_BYTES and not unpacker.eof:
        raise BadRequest("it is not a whole gzip file: it ends too early")
    return text
