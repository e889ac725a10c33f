"""Recognises requests that came before by their bytes, so that they need not be read again; for connection.py."""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

import httptools

from lakewarden.hot.kept_answers import KeptAnswers
from lakewarden.hot.routes import Repeat

LONGEST: Final = 8 * 1024
"""Bytes of a request."""
_OVERHEAD: Final = 2048
"""Bytes of memory that a request takes, beside its own and its answer's."""
_PER_HEADER: Final = 128
"""Bytes of memory that a header takes, beside its own: a request may have many short ones."""
_SEEN: Final = 10_000
_BEGINNINGS: Final = (b"GET /catalog/", b"HEAD /catalog/")
_END: Final = b"\r\n\r\n"

Key = tuple[bytes, str, str]
"""A digest, because the process's memory must not contain valid tokens; the peer's address; the scheme."""
Pairs = list[tuple[bytes, bytes]]


def key_of(data: bytes, *, client: str, scheme: str) -> Key | None:
    """Of bytes that may be a whole request without a body."""
    if len(data) > LONGEST or not (data.startswith(_BEGINNINGS) and data.endswith(_END)):
        return None
    return sha256(data).digest(), client, scheme


class Repeats:
    """Belongs to one event loop. A request is kept when it comes for the second time: many differ in each one's id."""

    def __init__(self, capacity: int, *, percent: int) -> None:
        """`capacity` in bytes, of which one caller may have `percent`."""
        self._kept: KeptAnswers[Repeat] = KeptAnswers(capacity, percent=percent)
        self._seen: set[Key] = set()

    def find(self, key: Key) -> Repeat | None:
        """What came with this key, from a caller whose token is still known."""
        repeat = self._kept.find(key)
        return repeat if repeat is not None and repeat.is_known() else None

    def keeper(self, key: Key, then: Callable[[Repeat], None]) -> Callable[[Repeat], None] | None:
        """`then` for a request that came before; None for a first one."""
        if key in self._seen:
            return then
        if len(self._seen) >= _SEEN:
            self._seen.clear()
        self._seen.add(key)
        return None

    def keep(self, key: Key, repeat: Repeat, *, size: int) -> None:
        """`size`: bytes of the kept answer."""
        request = repeat.request
        headers = sum(len(name) + len(value) + _PER_HEADER for name, value in request.headers.items())
        asked = len(request.path) + len(request.query) + headers
        self._kept.keep(key, repeat, size=_OVERHEAD + asked + size, caller=repeat.caller)


class _Headers:
    def __init__(self) -> None:
        self.found: Pairs = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.found.append((name.lower(), value))


def headers_of(data: bytes) -> Pairs:
    """The headers of a whole request, as uvicorn reads them."""
    read = _Headers()
    httptools.HttpRequestParser(read).feed_data(data)
    return read.found
