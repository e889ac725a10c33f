"""Content codings (RFC 9110, 8.4): compresses answers as the client prefers, decompresses
request bodies with limits.
"""

import zlib
from collections.abc import Callable, Mapping

import zstandard
from isal import igzip

from lakewarden.errors import BadRequest, PayloadTooLarge
from lakewarden.remembered import remembered

_WINDOW = 8 * 1024 * 1024  # bytes: the largest zstd window that RFC 9659 allows over HTTP
_SLICE = 256  # bytes: zstd makes at most 8 MiB of them, so the limit is checked often enough
_PIECE = 1024 * 1024  # bytes: the most that gzip may produce before the limit is checked again
_MAX_CODINGS = 3
_MAX_MEMBERS = 100  # gzip members or zstd frames in one body


def _weights(accept_encoding: str) -> Mapping[str, float]:
    """The weight of each coding in `Accept-Encoding`; 0 if it is not valid."""
    found: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        coding, _, parameter = part.partition(";")
        name, _, value = parameter.replace(" ", "").partition("=")
        try:
            weight = float(value) if name == "q" else 1.0
        except ValueError:
            weight = 0.0
        found[coding.strip().removeprefix("x-")] = weight if weight > 0 else 0.0
    return found


weights = remembered(_weights, entries=256, longest=200)


def weight(accept_encoding: str, coding: str) -> float:
    """The client's weight for a coding; 0 if it does not accept it."""
    named = weights(accept_encoding)
    return named.get(coding, named.get("*", 0.0))


def preferred(accept_encoding: str) -> str | None:
    """`zstd` if the client prefers it to gzip, else `gzip` if the client accepts it, else None."""
    zstd, gzip = weight(accept_encoding, "zstd"), weight(accept_encoding, "gzip")
    if zstd > gzip:
        return "zstd"
    return "gzip" if gzip > 0 else None


def packed(content: bytes, coding: str) -> bytes:
    if coding == "zstd":
        return zstandard.ZstdCompressor(level=1).compress(content)
    return bytes(igzip.compress(content, 1, mtime=0))


def unpacked(
    body: bytes, content_encoding: str, *, limit: int, grow: Callable[[int], None] = lambda _size: None
) -> bytes:
    """Decompress a request's body. `grow` is called with the size of each piece, and may raise to stop.

    Raises BadRequest for an unknown coding or a body that is not valid in it, PayloadTooLarge if it decompresses to
    more than `limit` bytes.
    """
    codings = [each.strip().lower().removeprefix("x-") for each in content_encoding.split(",")]
    codings = [each for each in codings if each not in {"", "identity"}]
    if not body or not codings:
        return body
    if len(codings) > _MAX_CODINGS:
        raise BadRequest(f"Invalid Content-Encoding: {len(codings)} codings, at most {_MAX_CODINGS} are allowed")
    for coding in reversed(codings):
        if coding not in _UNPACK:
            raise BadRequest(f"Unsupported Content-Encoding {coding[:80]!r}: gzip, zstd or identity is expected")
        body = _UNPACK[coding](body, limit, grow)
    return body


def _gunzip(body: bytes, limit: int, grow: Callable[[int], None]) -> bytes:
    parts: list[bytes] = []
    size = 0
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            try:
                parts.append(member.decompress(body, _PIECE))
            except zlib.error as error:
                raise BadRequest(f"The request body is not valid gzip: {error}") from None
            body = member.unused_data if member.eof else member.unconsumed_tail
            size += len(parts[-1])
            if size > limit:
                raise _too_large(limit)
            grow(len(parts[-1]))
            if not member.eof and len(parts[-1]) < _PIECE:
                raise BadRequest("The request body is not valid gzip: it ends too early")
        if not body:
            return b"".join(parts)
    raise BadRequest(f"The request body has more than {_MAX_MEMBERS} gzip members")


def _unzstd(body: bytes, limit: int, grow: Callable[[int], None]) -> bytes:
    parts: list[bytes] = []
    size = position = 0
    for _ in range(_MAX_MEMBERS):
        frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        while not frame.eof:
            piece = body[position : position + _SLICE]
            if not piece:
                raise BadRequest("The request body is not valid zstd: it ends too early")
            try:
                parts.append(frame.decompress(piece))
            except zstandard.ZstdError as error:
                raise BadRequest(f"The request body is not valid zstd: {error}") from None
            position += len(piece)
            size += len(parts[-1])
            if size > limit:
                raise _too_large(limit)
            grow(len(parts[-1]))
        position -= len(frame.unused_data)
        if position == len(body):
            return b"".join(parts)
    raise BadRequest(f"The request body has more than {_MAX_MEMBERS} zstd frames")


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request body is larger than {limit} bytes, unpacked")


_UNPACK = {"gzip": _gunzip, "zstd": _unzstd}
