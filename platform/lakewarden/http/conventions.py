"""Headers of every answer: caching and CORS; asgi.py adds them, also to hot answers."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

Headers = list[tuple[bytes, bytes]]

IDENTITY: Final = b"Authorization, X-Project-Id, X-Project-Ident, X-Assume-Role"
"""The request headers that select the caller and the project."""

_HEALTH: Final = b"/health"
_PRIVATE: Final = (b"cache-control", b"private")
_VARY: Final = (b"vary", IDENTITY)
CALLABLE: Final = (b"/catalog/", b"/management/", b"/lakehouse/", b"/generic/", b"/lakekeeper/")
_METHODS: Final = b"GET, HEAD, POST, PUT, DELETE"
_SENT: Final = (
    b"Authorization, Content-Type, If-None-Match, Idempotency-Key, Last-Event-ID, X-Assume-Role, "
    b"X-Iceberg-Access-Delegation, "
    b"X-Project-Id, X-Project-Ident, X-Request-Id"
)
_READ: Final = b"ETag, Retry-After, WWW-Authenticate, X-Request-Id"
_REMEMBERED_S: Final = b"600"


def keep_private(path: bytes, headers: Headers) -> None:
    """Mark an answer as private to its caller (RFC 9111, 5.2.2.7), unless it has a `Cache-
    Control` or is of `/health`.
    """
    varies = -1
    for place, (name, _) in enumerate(headers):
        if name == b"cache-control":
            return
        if name == b"vary":
            varies = place
    if path.startswith(_HEALTH):
        return
    headers.append(_PRIVATE)
    if varies < 0:
        headers.append(_VARY)
    else:
        headers[varies] = (b"vary", _merged(headers[varies][1], IDENTITY))


class Cors:
    """Lets pages of the configured origins call the APIs from a browser (Fetch standard, 3.2)."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self.is_on = bool(self._origins)

    def preflight(self, method: str, path: bytes, asked: Mapping[bytes, bytes]) -> Headers | None:
        """The headers of the answer (204) to a preflight request; None if it is not one, or
        the origin is not allowed.
        """
        allowed = self._allowed(asked.get(b"origin"))
        if method != "OPTIONS" or b"access-control-request-method" not in asked or not path.startswith(CALLABLE):
            return None
        if allowed is None:
            return None
        return [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _SENT),
            (b"access-control-max-age", _REMEMBERED_S),
        ]

    def mark(self, path: bytes, asked: Mapping[bytes, bytes], headers: Headers) -> None:
        """Add the headers that say whether a page of the request's origin may read the answer."""
        if not path.startswith(CALLABLE):
            return
        if b"*" not in self._origins:
            _vary_on_origin(headers)
        allowed = self._allowed(asked.get(b"origin"))
        if allowed is not None:
            headers += [(b"access-control-allow-origin", allowed), (b"access-control-expose-headers", _READ)]

    def _allowed(self, origin: bytes | None) -> bytes | None:
        if origin is None:
            return None
        if b"*" in self._origins:
            return b"*"
        return origin if origin in self._origins else None


def _vary_on_origin(headers: Headers) -> None:
    for place, (name, value) in enumerate(headers):
        if name == b"vary":
            headers[place] = (name, _merged(value, b"Origin"))
            return
    headers.append((b"vary", b"Origin"))


@lru_cache(maxsize=256)
def _merged(value: bytes, further: bytes) -> bytes:
    """Both lists joined, without duplicates."""
    known = {name.strip().lower() for name in value.split(b",")}
    return b", ".join([value, *(name for name in further.split(b", ") if name.lower() not in known)])
