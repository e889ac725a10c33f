"""The short way of a hot read: from the connection to its handler and back, without ASGI's scope and messages.

A connection takes it for requests that have no body; everything else, and what the handler leaves to Django, goes
through uvicorn's cycle. There each request costs a scope, a cycle, an event and several closures: three times as much
as parsing it.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from lakewarden.hot.routes import Answer, HotRequest, Repeat, WholeAnswer
from lakewarden.hot.sessions import Row
from lakewarden.http.repeats import Key, Repeats

TRIED: Final = "lakewarden.tried"
"""In the scope of a request that no hot handler could answer: it need not be tried again."""

BARE: Final = (b"/catalog/",)
"""How the paths begin that have hot handlers."""

_END: Final = b"\r\n"
_ID: Final = b"x-request-id"
_CLOSE: Final = b"connection: close\r\n"
_BODILESS: Final = frozenset({204, 304})

Headers = Sequence[tuple[bytes, bytes]]
_Message = MutableMapping[str, Any]


class Lane(Protocol):
    """What an application offers that has one."""

    repeats: Repeats

    def request(self, method: bytes, target: bytes, headers: Headers, *, scheme: str, client: str) -> HotRequest | None:
        """The request, if it may go this way; a request target is sent as in RFC 9112, 3.2."""

    def answer(self, request: HotRequest) -> Awaitable[Answer | None]:
        """Complete but for the headers that the connection adds; None for what is Django's."""

    def may_repeat(self) -> bool:
        """Whether requests that came before may be answered without being read."""

    def again(self, repeat: Repeat, looking: Future[Row | None] | None) -> Awaitable[Answer | None]:
        """As `answer`."""


class Application(Protocol):
    """The root of the process."""

    @property
    def lane(self) -> Lane: ...

    async def __call__(
        self, scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
    ) -> None: ...


class _NobodyWaits:
    def set(self) -> None:
        """For a body."""


class LaneCycle:
    """Stands where uvicorn looks for its state of the request in progress."""

    __slots__ = ("disconnected", "keep_alive", "key", "response_complete")

    more_body = False
    response_started = False
    message_event = _NobodyWaits()

    def __init__(self, key: Key | None = None) -> None:
        """`key`: what the request is known by when it comes again."""
        self.disconnected = self.response_complete = False
        self.keep_alive = True
        self.key = key


class _Rendered:
    """The headers that uvicorn adds to all answers, which it replaces once a second, as they are sent."""

    def __init__(self) -> None:
        self._of: object = None
        self.lines = b""
        self.number = 0

    def renew(self, headers: Headers) -> None:
        if headers is not self._of:
            self._of = headers
            self.lines = b"".join(part for name, value in headers for part in (name, b": ", value, _END))
            self.number = len(headers)


_DEFAULTS: Final = _Rendered()


def head_of(answer: Answer, default_headers: Headers, *, keep_alive: bool) -> bytes | None:
    """Everything before the body; None for what ASGI's messages must carry.

    That is an answer whose length is not announced exactly, that speaks of the connection, or that holds a line break
    in a header. The checks of names and values that uvicorn makes for each header are made for the whole head.
    """
    status, headers, content = answer
    _DEFAULTS.renew(default_headers)
    lines = [STATUS_LINE[status], _DEFAULTS.lines]
    announced: bytes | None = None
    for name, value in headers:
        if name == b"content-length":
            announced = value
        elif name in {b"connection", b"transfer-encoding"}:
            return None
        lines += (name, b": ", value, _END)
    if not keep_alive:
        lines.append(_CLOSE)
    lines.append(_END)
    head = b"".join(lines)
    if status in _BODILESS:
        is_exact = announced is None and not content
    else:
        is_exact = announced is not None and announced == b"%d" % len(content)
    breaks = len(headers) + _DEFAULTS.number + 2 + (not keep_alive)
    is_clean = head.count(b"\n") == head.count(b"\r") == head.count(_END) == breaks and b"\x00" not in head
    return head if is_exact and is_clean else None


def whole_of(answer: Answer) -> WholeAnswer:
    """An answer for which `head_of` has made a head; its id is left out."""
    status, headers, content = answer
    lines = [name + b": " + value + _END for name, value in headers if name != _ID]
    before = next(place for place, (name, _) in enumerate(headers) if name == _ID)
    return WholeAnswer(status, b"".join(lines[:before]) + _ID + b": ", _END + b"".join(lines[before:]) + _END + content)


def repeated(whole: WholeAnswer, identifier: bytes, default_headers: Headers) -> bytes:
    """All bytes of an answer to a request with this id."""
    _DEFAULTS.renew(default_headers)
    status, before, after = whole
    return b"".join((STATUS_LINE[status], _DEFAULTS.lines, before, identifier, after))
