"""Which headers of an engine's request are signed, and which are refused."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from lakewarden.errors import BadRequest, Forbidden
from lakewarden.storage.s3.sigv4 import UNSIGNED


class Bounds(NamedTuple):
    """How large a request to sign may be (settings `storage.aws.signing_max_…`)."""

    uri_characters: int = 8192
    headers: int = 100
    header_bytes: int = 16 * 1024


_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_HASH_HEADER: Final = "x-amz-content-sha256"
COPY_SOURCE: Final = "x-amz-copy-source"

_OF_A_WRITE: Final = frozenset(
    {
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-length",
        "content-md5",
        "content-type",
        "expires",
        "if-match",
        "if-none-match",
    }
)
"""Signed where they say what is written. On a read they are not: engines use its signature for further ones."""
_WORDS: Final = frozenset({UNSIGNED, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"})
_AMZ: Final = frozenset(
    {
        COPY_SOURCE,
        "x-amz-decoded-content-length",
        "x-amz-expected-bucket-owner",
        "x-amz-metadata-directive",
        "x-amz-mp-object-size",
        "x-amz-request-payer",
        "x-amz-sdk-checksum-algorithm",
        "x-amz-storage-class",
        "x-amz-te",
        "x-amz-trailer",
        "x-amz-user-agent",
    }
)
_AMZ_BEGINNINGS: Final = ("x-amz-checksum-", "x-amz-meta-", "x-amz-server-side-encryption", f"{COPY_SOURCE}-")
_EXTRACTS: Final = "x-amz-meta-snowball-auto-extract"
_NOT_META: Final = ("x-amz-meta-snowball-", "x-amz-meta-minio-")
"""With these, MinIO unpacks an archive to any keys in the bucket."""
_NEVER_MATCHES: Final = "none"
_PRIVATE_ACLS: Final = frozenset({"private", "bucket-owner-read", "bucket-owner-full-control"})


class _Kind(Enum):
    HOST = auto()
    HASH = auto()
    DATE = auto()
    ACL = auto()
    WRITTEN = auto()
    SIGNED = auto()
    REFUSED = auto()
    OTHER = auto()


_HOST, _HASH, _DATE, _ACL = _Kind.HOST, _Kind.HASH, _Kind.DATE, _Kind.ACL
_WRITTEN, _SIGNED, _REFUSED, _OTHER = _Kind.WRITTEN, _Kind.SIGNED, _Kind.REFUSED, _Kind.OTHER
_KINDS: Final = {"host": _HOST, _HASH_HEADER: _HASH, "x-amz-date": _DATE, "x-amz-acl": _ACL}


class _Bad(BadRequest):
    def __init__(self, problem: str) -> None:
        super().__init__(f"Invalid headers of the request to sign: {problem}")


class Headers(msgspec.Struct, frozen=True):
    """`signed` are those that are signed, with names in lower case and values as Signature Version 4 writes them.

    `payload` is what the engine says about the body: its hash, or the word that there is none.
    """

    signed: dict[str, str]
    host: str | None
    payload: str | None


def read_headers(headers: Mapping[str, Sequence[str]], bounds: Bounds, *, is_write: bool) -> Headers:
    """Raises BadRequest for what is not a valid header, Forbidden for one that would give others access to the file."""
    _ensure_bounded(headers, bounds)
    signed: dict[str, str] = {}
    host = payload = None
    for name, values in headers.items():
        lower, kind = _sorted_in(name)
        if kind is _OTHER:
            continue
        if kind is _HOST:
            host = _only(lower, values, before=host)
            continue
        if kind is _HASH:
            payload = _only(lower, values, before=payload)
            continue
        if kind is _DATE or (kind is _WRITTEN and not is_write):
            continue
        if kind is _ACL:
            _ensure_private(values)
        elif kind is _REFUSED:
            raise Forbidden(f"Requests with the header {name[:80]} are not signed")
        if lower in signed:
            raise _Bad(f"{lower} is given twice, in different spellings")
        signed[lower] = ",".join([" ".join(value.split()) for value in values])
    if payload is not None and payload not in _WORDS and not _DIGEST.fullmatch(payload):
        raise _Bad(f"{_HASH_HEADER} must be a SHA-256 in hexadecimal digits, or {UNSIGNED}: chunks are not signed")
    return Headers(signed, None if host is None else host.lower(), payload)


def _only(name: str, values: Sequence[str], *, before: str | None) -> str | None:
    if len(values) + (before is not None) > 1:
        raise _Bad(f"{name} is given twice")
    return values[0] if values else before


def _ensure_bounded(headers: Mapping[str, Sequence[str]], bounds: Bounds) -> None:
    if len(headers) > bounds.headers:
        raise _Bad(f"there are {len(headers)}, and at most {bounds.headers} are allowed")
    text = "".join([name + "".join(values) for name, values in headers.items()])
    if len(text) > bounds.header_bytes:
        raise _Bad(f"they have more than {bounds.header_bytes} bytes")
    if not text.isprintable() and _CONTROL.search(text):
        for name, values in headers.items():
            if any(map(_CONTROL.search, values)):
                raise _Bad(f"the value of {name} contains a control character")


@lru_cache(maxsize=1000)
def _sorted_in(name: str) -> "tuple[str, _Kind]":
    """The name in lower case, and what becomes of the header. Raises BadRequest for what is not a valid name."""
    if not _NAME.fullmatch(name):
        raise _Bad(f"{name[:80]!r} is not a valid name")
    lower = name.lower()
    if lower in _KINDS:
        return lower, _KINDS[lower]
    if not lower.startswith("x-amz-"):
        return lower, _WRITTEN if lower in _OF_A_WRITE else _OTHER
    if lower.startswith(_NOT_META) or (lower not in _AMZ and not lower.startswith(_AMZ_BEGINNINGS)):
        return lower, _REFUSED
    return lower, _SIGNED


def guards(signed: Mapping[str, str]) -> dict[str, str]:
    """Headers to be sent with a write, and signed, so that headers that are added afterwards cannot make it another.

    AWS refuses a request with a header `x-amz-…` that is not signed. MinIO does not: by `x-amz-copy-source` a write of
    one file would copy any other in the bucket. A copy needs the source to match; a plain write ignores that.
    """
    return {_EXTRACTS: "false"} | ({} if COPY_SOURCE in signed else {f"{COPY_SOURCE}-if-match": _NEVER_MATCHES})


def _ensure_private(values: Sequence[str]) -> None:
    if not _PRIVATE_ACLS.issuperset(values):
        raise Forbidden(f"x-amz-acl must be one of {', '.join(sorted(_PRIVATE_ACLS))}: others open files to others")
