"""Which headers of an engine's request are signed, and which are refused."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from lakewarden.errors import BadRequest, Forbidden
from lakewarden.storage.s3.sigv4 import UNSIGNED

MOST_HEADERS: Final = 100
MOST_BYTES: Final = 16 * 1024

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
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
_REPLACED: Final = frozenset({"x-amz-date", _HASH_HEADER})
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


class _Bad(BadRequest):
    def __init__(self, problem: str) -> None:
        super().__init__(f"Invalid headers of the request to sign: {problem}")


def signed_headers(headers: Mapping[str, Sequence[str]], *, is_write: bool) -> dict[str, str]:
    """Those that are signed, with names in lower case and values as Signature Version 4 writes them.

    Raises BadRequest for what is not a valid header, Forbidden for one that would give others access to the file.
    """
    if len(headers) > MOST_HEADERS:
        raise _Bad(f"there are {len(headers)}, and at most {MOST_HEADERS} are allowed")
    signed: dict[str, str] = {}
    size = 0
    for name, values in headers.items():
        lower = name.lower()
        size += len(name) + sum(map(len, values))
        if size > MOST_BYTES:
            raise _Bad(f"they have more than {MOST_BYTES} bytes")
        if not _NAME.fullmatch(name):
            raise _Bad(f"{name[:80]!r} is not a valid name")
        if not all(map(_VALUE.fullmatch, values)):
            raise _Bad(f"the value of {name} contains a control character")
        if lower.startswith("x-amz-"):
            if lower in _REPLACED:
                continue
            _ensure_harmless(lower, values)
        elif not is_write or lower not in _OF_A_WRITE:
            continue
        if lower in signed:
            raise _Bad(f"{lower} is given twice, in different spellings")
        signed[lower] = ",".join(" ".join(value.split()) for value in values)
    return signed


def guards(signed: Mapping[str, str]) -> dict[str, str]:
    """Headers to be sent with a write, and signed, so that headers that are added afterwards cannot make it another.

    AWS refuses a request with a header `x-amz-…` that is not signed. MinIO does not: by `x-amz-copy-source` a write of
    one file would copy any other in the bucket. A copy needs the source to match; a plain write ignores that.
    """
    return {_EXTRACTS: "false"} | ({} if COPY_SOURCE in signed else {f"{COPY_SOURCE}-if-match": _NEVER_MATCHES})


def content_hash(headers: Mapping[str, Sequence[str]]) -> str | None:
    """What the engine says about the body: its hash, or the word that there is none. Raises BadRequest for others."""
    found = [value for name, values in headers.items() if name.lower() == _HASH_HEADER for value in values]
    if not found:
        return None
    if len(found) > 1:
        raise _Bad(f"{_HASH_HEADER} is given twice")
    if not _HASH.fullmatch(found[0]) and found[0] not in {UNSIGNED, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}:
        raise _Bad(f"{_HASH_HEADER} must be a SHA-256 in hexadecimal digits, or {UNSIGNED}: chunks are not signed")
    return found[0]


def host_header(headers: Mapping[str, Sequence[str]]) -> str | None:
    found = [value for name, values in headers.items() if name.lower() == "host" for value in values]
    if len(found) > 1:
        raise _Bad("host is given twice")
    return found[0].lower() if found else None


def _ensure_harmless(name: str, values: Sequence[str]) -> None:
    if name == "x-amz-acl":
        if not _PRIVATE_ACLS.issuperset(values):
            raise Forbidden(f"x-amz-acl must be one of {', '.join(sorted(_PRIVATE_ACLS))}: others open files to others")
    elif name.startswith(_NOT_META) or (name not in _AMZ and not name.startswith(_AMZ_BEGINNINGS)):
        raise Forbidden(f"Requests with the header {name[:80]} are not signed")
