"""What a hot route is: an async handler for the few requests that engines hammer, called before Django.

It answers the ordinary case only. Whatever is not ordinary (an unknown token, a missing table, a decision that is not
known yet, an odd header) it leaves to Django by answering None, so that each rule is written once.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class HotRequest(NamedTuple):
    """`path` is percent-encoded, without the query; header names are lower-case; `body` is complete, and small."""

    method: str
    scheme: str
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        value = self.headers.get(name.encode())
        return None if value is None else value.decode("latin-1")


HotRoute = Callable[[HotRequest], Awaitable[Answer | None]]
