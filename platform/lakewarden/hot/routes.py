"""What a hot route is: an async handler for the few requests that engines hammer, called before Django.

It answers the ordinary case only. Whatever is not ordinary (an unknown token, a missing table, a decision that is not
known yet, an odd header) it leaves to Django by answering None, so that each rule is written once.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from lakewarden.hot.sessions import Row

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class HotRequest(NamedTuple):
    """`path` is percent-encoded, without the query; header names are lower-case; `body` is complete, and small.

    `keep` takes what a handler has found out about a request that may come again, byte for byte.
    """

    method: str
    scheme: str
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes = b""
    keep: "Callable[[Repeat], None] | None" = None

    def header(self, name: str) -> str | None:
        value = self.headers.get(name.encode())
        return None if value is None else value.decode("latin-1")


class WholeAnswer(NamedTuple):
    """An answer as it is sent, but for the headers of all answers, which stand before it, and the request's id."""

    status: int
    before_id: bytes
    after_id: bytes


class Repeat(Protocol):
    """A request that has been answered: what need not be found out again when the same bytes come once more.

    Everything that may have changed since is looked at each time, as for a new request.
    """

    @property
    def request(self) -> HotRequest:
        """Without the headers that prove who asks."""

    @property
    def caller(self) -> str:
        """Whose request it is."""

    def is_known(self) -> bool:
        """Whether its caller's token is still what it was."""

    def look_up(self) -> Future[Row | None] | None:
        """Ask for its row; None when no answer is kept that could be compared with one."""

    def at_once(self, looking: Future[Row | None]) -> tuple[WholeAnswer, bytes] | None:
        """The answer that was kept, if it is what the request would be answered with now, and the request's id.

        The request has been counted, and its decision noted.
        """

    def answer(self, looking: Future[Row | None] | None) -> Awaitable[Answer | None]:
        """As a `HotRoute` answers, from the row that was asked for."""

    def sent(self, answer: Answer | None) -> int:
        """Keep an answer, which has all its headers, if it may be; returns how many bytes of memory it takes.

        None for one that went another way: nothing is kept of it.
        """


HotRoute = Callable[[HotRequest], Awaitable[Answer | None]]
