"""The stored form of a load response: a gzip stream that is sent unchanged, with the caller's part appended.

A response is `{"metadata-location":…,"metadata":…` followed by a suffix that depends on the caller. The first part is
compressed once, at commit, and flushed to a byte boundary. The suffix is appended as a stored block (RFC 1951, 3.2.4),
so a read neither decompresses nor compresses. It is a single gzip member, because clients ignore further ones.
"""

import zlib
from dataclasses import dataclass

import msgspec
from isal import isal_zlib

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # RFC 1952: deflate, no name, no time, unknown system
_LEVEL = 1
_GZIP = 31  # zlib's number for a stream with a header
_BLOCK = 0xFFFF
_MODULO = 1 << 32


@dataclass(frozen=True, slots=True)
class Document:
    """`content` is gzip header and deflate stream; `crc` and `length` (bytes) are those of the uncompressed content."""

    content: bytes
    crc: int
    length: int


def pack(metadata_location: str, metadata: bytes) -> Document:
    plain = unpacked(metadata_location, metadata)
    stream = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)
    content = _HEADER + stream.compress(plain) + stream.flush(isal_zlib.Z_SYNC_FLUSH)
    return Document(content, isal_zlib.crc32(plain), len(plain))


def unpacked(metadata_location: str, metadata: bytes) -> bytes:
    """The uncompressed content of a document."""
    return _prefix(metadata_location) + metadata


def spliced(document: Document, suffix: bytes) -> bytes:
    """A complete gzip member of the document followed by `suffix`."""
    parts = [document.content]
    for start in range(0, len(suffix), _BLOCK):
        block = suffix[start : start + _BLOCK]
        final = b"\x01" if start + _BLOCK >= len(suffix) else b"\x00"
        size = len(block)
        parts += [final, size.to_bytes(2, "little"), (size ^ 0xFFFF).to_bytes(2, "little"), block]
    crc = zlib.crc32(suffix, document.crc)
    parts += [crc.to_bytes(4, "little"), ((document.length + len(suffix)) % _MODULO).to_bytes(4, "little")]
    return b"".join(parts)


def inflated(document: Document) -> bytes:
    """The document's uncompressed content."""
    plain: bytes = isal_zlib.decompressobj(-15).decompress(document.content[len(_HEADER) :])
    return plain


def loaded(document: Document, suffix: bytes) -> bytes:
    """The document followed by `suffix`, uncompressed."""
    size = document.length + len(suffix)
    plain: bytes = isal_zlib.decompress(spliced(document, suffix), _GZIP, size)  # appended later, it would be copied
    return plain


def metadata_of(document: Document, metadata_location: str) -> bytes:
    """The JSON of the metadata in the document."""
    return inflated(document)[len(_prefix(metadata_location)) :]


def prefix_length(metadata_location: str) -> int:
    """Number of uncompressed bytes before the metadata."""
    return len(_prefix(metadata_location))


def _prefix(metadata_location: str) -> bytes:
    return b'{"metadata-location":' + msgspec.json.encode(metadata_location) + b',"metadata":'
