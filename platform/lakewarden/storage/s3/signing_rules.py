"""Which requests to S3 may be signed for an engine: what each one reaches, in keys, and whether it only reads.

A request is refused unless it is known to reach nothing but these keys, and is read in one way only.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import Final
from urllib.parse import quote, unquote_to_bytes

import msgspec

from lakewarden.errors import BadRequest, Forbidden, MethodNotAllowed
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.object_locations import problem_of
from lakewarden.storage.request_signing import SignRequest
from lakewarden.storage.s3.delete_bodies import deleted_keys
from lakewarden.storage.s3.signing_headers import COPY_SOURCE, Bounds, guards, read_headers
from lakewarden.storage.s3.signing_hosts import Hosts
from lakewarden.storage.s3.sigv4 import UNSIGNED, CanonicalRequest
from lakewarden.storage.s3.upload_ids import ensure_plain

LONGEST_KEY: Final = 1024
"""Bytes in UTF-8 (S3, object key naming)."""
_READS: Final = frozenset({"GET", "HEAD"})
_BOUNDS: Final = Bounds()
_NO_NAMES: Final = frozenset[str]()
_NOTHING: Final[dict[str, str]] = {}
METHODS: Final = ("GET", "HEAD", "PUT", "POST", "DELETE")

_URI: Final = re.compile(r"(https?)://([^/?#\\@\x00- \x7f]+)(/[^?#\\\x00- \x7f]*)?(?:\?([^#\x00- \x7f]*))?")
_VISIBLE: Final = re.compile(r"[!-~]*")
_ORDINARY: Final = re.compile(r"(?:(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*/)*[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)?")
"""Paths that are keys as they are written: no name in them is empty, begins with a dot, or needs to be encoded."""
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_READ, _WRITE = AccessLevel.READ, AccessLevel.WRITE

_SDK_NOTE: Final = "x-id"
"""Some clients say in it which operation they mean; the store ignores it."""
_ON_KEYS: Final = {
    ("GET", frozenset[str]()): _READ,
    ("HEAD", frozenset[str]()): _READ,
    ("GET", frozenset({"partNumber"})): _READ,
    ("HEAD", frozenset({"partNumber"})): _READ,
    ("PUT", frozenset[str]()): _WRITE,
    ("PUT", frozenset({"partNumber", "uploadId"})): _WRITE,
    ("POST", frozenset({"uploads"})): _WRITE,
    ("POST", frozenset({"uploadId"})): _WRITE,
    ("DELETE", frozenset[str]()): _WRITE,
    ("DELETE", frozenset({"uploadId"})): _WRITE,
    ("GET", frozenset({"uploadId"})): _WRITE,
    ("GET", frozenset({"uploadId", "max-parts"})): _WRITE,
    ("GET", frozenset({"uploadId", "part-number-marker"})): _WRITE,
    ("GET", frozenset({"uploadId", "max-parts", "part-number-marker"})): _WRITE,
}
"""The level that a request on one key needs, by its method and parameters; there are no others."""
_OF_LISTS: Final = frozenset(
    {
        "list-type",
        "prefix",
        "delimiter",
        "max-keys",
        "continuation-token",
        "start-after",
        "encoding-type",
        "fetch-owner",
    }
)


class Signable(msgspec.Struct, frozen=True):
    """A request that may be signed for those who may do `level` with all that begins with one of `keys`.

    `guards` are among the headers that are signed, and the engine must add them.
    """

    level: AccessLevel
    keys: Sequence[str]
    uri: str
    canonical: CanonicalRequest
    guards: Mapping[str, str]


class _Url(msgspec.Struct, frozen=True):
    """`path` is percent-encoded, `key` is the decoded key in it; `host` is the value of the header.

    `is_checked`: the key is one that all stores read in the same way.
    """

    origin: str
    host: str
    path: str
    key: str
    is_checked: bool
    query: Mapping[str, str]


class SigningRules:
    """The rules for one bucket; `is_aws`: its store refuses headers that were added to a signed request."""

    def __init__(self, bucket: str, hosts: Hosts, *, is_aws: bool, bounds: Bounds = _BOUNDS) -> None:
        self._bucket = bucket
        self._hosts = hosts
        self._is_aws = is_aws
        self._bounds = bounds

    def read(self, request: SignRequest) -> Signable:
        """What the request reaches.

        Raises BadRequest for one that is malformed, or of a kind that is not signed; Forbidden for another host or
        bucket; MethodNotAllowed.
        """
        method = request.method
        if method not in METHODS:
            raise MethodNotAllowed(
                f"Requests with the method {method[:20]!r} are not signed: only {', '.join(METHODS)}"
            )
        headers = read_headers(request.headers, self._bounds, is_write=method not in _READS)
        url = self._url(request, headers.host)
        names = url.query.keys() - {_SDK_NOTE} if url.query else _NO_NAMES
        if not url.key:
            level, keys = _on_bucket(request, names, url.query)
        else:
            found = _ON_KEYS.get((method, frozenset(names)))
            if found is None:
                raise _not_signed(method, names)
            if not url.is_checked:
                _ensure_key(url.key)
            if (upload := url.query.get("uploadId")) is not None:
                ensure_plain(upload)
            level, keys = found, [url.key]
        signed = headers.signed
        if COPY_SOURCE in signed:
            if method != "PUT":
                raise BadRequest(f"{COPY_SOURCE} is for requests with the method PUT only")
            keys = [*keys, self._copied_key(signed[COPY_SOURCE])]
        query = _canonical(url.query) if url.query else ""
        payload = _payload(request.body, headers.payload, is_trusted="delete" not in names)
        guarded = guards(signed) if method == "PUT" and not self._is_aws else _NOTHING
        all_signed = signed | guarded if guarded else signed
        canonical = CanonicalRequest(method, url.host, url.path, query, all_signed, payload)
        return Signable(level, keys, f"{url.origin}{url.path}{f'?{query}' if query else ''}", canonical, guarded)

    def _url(self, request: SignRequest, given: str | None) -> _Url:
        """`given` is the header `host`."""
        uri = request.uri
        if len(uri) > (most := self._bounds.uri_characters):
            raise BadRequest(f"The uri has {len(uri)} characters, and at most {most} are allowed")
        parts = _URI.fullmatch(uri) if uri.isascii() else None
        if parts is None:
            raise BadRequest(f"{uri[:200]!r} is not a valid uri: http or https, a host, and a percent-encoded path")
        scheme, host, path, query = parts.groups()
        path = path or "/"
        place = self._hosts.find(scheme, host)
        if place is None:
            raise Forbidden(f"{scheme}://{host[:200]} is not where the warehouse's bucket is: {self._hosts}")
        if given is not None and given not in place.names:
            raise BadRequest(f"The header host is {given[:200]!r}, but the uri names {host[:200]!r}")
        before, rest = path[: len(place.before)], path[len(place.before) :]
        if before != place.before or rest[:1] not in {"", "/"}:
            raise Forbidden(f"{path[:200]!r} is not in the warehouse's bucket {self._bucket!r}")
        rest = rest.removeprefix("/")
        key, is_checked = rest, len(rest) <= LONGEST_KEY and _ORDINARY.fullmatch(rest) is not None
        if not is_checked:
            key = _decoded(rest, "path")
            path = f"{before}/{quote(key, safe='/-_.~')}"
        parameters = _parameters(query) if query else _NOTHING
        return _Url(f"{scheme}://{host}", given or place.names[0], path, key, is_checked, parameters)

    def _copied_key(self, source: str) -> str:
        """The key that a copy reads; Forbidden for one in another bucket."""
        path = source.removeprefix("/")
        if "?" in path or "#" in path:
            raise BadRequest(f"{COPY_SOURCE} must be a bucket and a key alone: write %3F and %23 in the key")
        if not _VISIBLE.fullmatch(path):
            raise BadRequest(f"{COPY_SOURCE} must be percent-encoded")
        bucket, _, key = path.partition("/")
        if bucket != self._bucket:
            raise Forbidden(f"{COPY_SOURCE} is in the bucket {bucket[:80]!r}, but the table is in {self._bucket!r}")
        key = _decoded(key, COPY_SOURCE)
        _ensure_key(key)
        return key


def _on_bucket(
    request: SignRequest, names: AbstractSet[str], query: Mapping[str, str]
) -> tuple[AccessLevel, list[str]]:
    """A request without a key: a list, or a deletion of several keys."""
    if request.method == "POST" and names == {"delete"}:
        if request.body is None:
            raise BadRequest("To delete several objects, the request to sign must hold its body: each key is checked")
        keys = deleted_keys(request.body)
        for key in keys:
            _ensure_key(key)
        return _WRITE, keys
    if request.method != "GET" or "list-type" not in names or not names <= _OF_LISTS:
        raise _not_signed(request.method, names)
    if query["list-type"] != "2":
        raise BadRequest("Only lists of the second version are signed: list-type=2")
    prefix = query.get("prefix", "")
    if not prefix.endswith("/"):
        raise BadRequest(
            f"prefix={prefix[:200]!r} is not a folder: a slash is missing at its end, and the store compares texts"
        )
    _ensure_key(prefix)
    return _READ, [prefix]


def _payload(body: str | None, given: str | None, *, is_trusted: bool) -> str:
    """What is signed of the body; not `is_trusted`: the body was checked, so that no other may be sent."""
    if body is None or (is_trusted and given is not None):
        return given or UNSIGNED
    own = sha256(body.encode()).hexdigest()
    if given not in {None, own}:
        raise BadRequest("x-amz-content-sha256 is not the SHA-256 of the body")
    return own


def _parameters(query: str) -> dict[str, str]:
    """Each parameter by its name, decoded; BadRequest for one that is given twice."""
    found: dict[str, str] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        name = _decoded(name, "query")
        if name.lower().startswith("x-amz-"):
            raise BadRequest(f"The uri is signed already, or holds credentials: {name[:80]}")
        if name in found:
            raise BadRequest(f"The uri has the parameter {name[:80]!r} twice")
        found[name] = _decoded(value, "query")
    return found


def _canonical(query: Mapping[str, str]) -> str:
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))


def _decoded(text: str, part: str) -> str:
    """Percent-decoded once; BadRequest for what stores read in several ways."""
    if "+" in text:
        raise BadRequest(f"The {part} contains '+', which some stores read as a space: write %2B or %20")
    if _BROKEN_ESCAPE.search(text):
        raise BadRequest(f"The {part} contains '%' without two hexadecimal digits: write %25")
    if part != "query" and "%2f" in text.lower():
        raise BadRequest(f"The {part} contains an encoded slash, %2F: write it as it is if it separates folders")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise BadRequest(f"The {part} is not valid UTF-8 when it is decoded") from None


def _ensure_key(key: str) -> None:
    """BadRequest for a key that some stores, or their gateways, take for another one."""
    if len(key) * 4 > LONGEST_KEY and len(key.encode()) > LONGEST_KEY:
        raise BadRequest(f"The key {key[:200]!r}… has more than {LONGEST_KEY} bytes, which no object of S3 has")
    problem = problem_of(key.removesuffix("/"))
    if problem is not None:
        raise BadRequest(f"The key {key[:200]!r} {problem}")


def _not_signed(method: str, names: AbstractSet[str]) -> BadRequest:
    """For operations on ACLs, policies, tags, versions and all others."""
    shown = ", ".join(sorted(names))[:200] or "no parameters"
    return BadRequest(f"This operation of S3 is not signed: {method} with {shown}")
