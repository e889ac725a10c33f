"""Waits for events: streams (server-sent events) and long requests (`wait`) for the pages of a view.

While nothing happens, a reader holds neither a thread nor a connection to the database. Each page is an ordinary
request to the view, so authentication and rights are checked again for each, and from time to time without news.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from lakewarden import config
from lakewarden.errors import LakewardenError
from lakewarden.hot.routes import Answer
from lakewarden.http import health
from lakewarden.http.answers import PIECE
from lakewarden.http.event_pages import EventPage
from lakewarden.http.log_watch import LogWatch
from lakewarden.http.refusal import refusal
from lakewarden.paging import next_token

Ask = Callable[[EventPage], Awaitable[Answer]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_PATHS: Final = frozenset(
    f"/management/{version}{path}".encode() for version in ("v1/", "") for path in ("events", "server/events")
)
_CONSOLE: Final = b"/console/"
_STREAM: Final = b"text/event-stream"
_PAUSE_S: Final = 0.1
"""Between two pages of one reader."""
_WATCH: Final = LogWatch()
_ALIVE: Final = b":\n\n"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a request waits for: a stream of events, or, for at most `wait_s`, a page that is not empty."""

    is_stream: bool
    wait_s: float


def waiting(method: str, path: bytes, query: bytes, headers: Mapping[bytes, bytes]) -> Waiting | None:
    """None for a request that is answered at once; a wrong `wait` is refused by the view."""
    is_page = path.startswith(_CONSOLE)
    if method != "GET" or not (is_page or path in _PATHS):
        return None
    if _STREAM in headers.get(b"accept", b""):
        return Waiting(is_stream=True, wait_s=0)
    if is_page:
        return None
    wait = next((each[5:] for each in query.split(b"&") if each.startswith(b"wait=")), b"")
    wait_s = int(wait) if wait.isdigit() and len(wait) < len("1000") else 0
    return Waiting(is_stream=False, wait_s=wait_s) if 0 < wait_s <= config.current().events.longest_wait_s else None


async def page_after(ask: Ask, *, wait_s: float, receive: Receive) -> Answer:
    """The first page with events, or an empty one when the time is over, the reader is gone or the server stops."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    page = EventPage(is_stream=False)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        while True:
            answer = await ask(page)
            left_s = deadline - loop.time()
            if not page.is_filled or page.events or page.more or left_s <= 0 or _is_over(gone):
                return answer
            position = await _WATCH.news(page.position, page.project, gone=gone, within_s=left_s)
            await asyncio.wait({gone}, timeout=_PAUSE_S)
            page = page.next(position)
    finally:
        gone.cancel()


class Stream:
    """Of one reader, who takes a `place` once their first page was allowed.

    `mark` adds the headers that all answers have, `counted` counts bytes while they are sent.
    """

    def __init__(
        self,
        ask: Ask,
        *,
        send: Send,
        receive: Receive,
        place: Callable[[EventPage], AbstractContextManager[None]],
        mark: Callable[[Answer], None],
        counted: Callable[[int], AbstractContextManager[None]],
    ) -> None:
        self._ask, self._send, self._receive, self._place = ask, send, receive, place
        self._mark, self._counted = mark, counted
        self._heartbeat_s = config.current().events.heartbeat_s
        self._told = -1

    async def run(self) -> Answer | None:
        """Until the reader is gone or may no longer read, or the server stops; a refusal instead of a stream."""
        page = EventPage(is_stream=True)
        answer = await self._ask(page)
        if not page.is_filled:
            return answer
        with self._place(page):
            await self._start(answer)
            gone = asyncio.ensure_future(_gone(self._receive))
            try:
                await self._follow(page, gone)
            finally:
                gone.cancel()
        await self._send({"type": "http.response.body", "body": b""})
        return None

    async def _follow(self, page: EventPage, gone: "asyncio.Future[None]") -> None:
        while True:
            await self._deliver(page)
            position = page.position
            if page.every_s is not None:
                await asyncio.wait({gone}, timeout=page.every_s)
            elif not page.more and not _is_over(gone):
                position = await _WATCH.news(position, page.project, gone=gone, within_s=self._heartbeat_s)
            await asyncio.wait({gone}, timeout=_PAUSE_S)
            if _is_over(gone):
                return
            page = page.next(position)
            _, _, content = await self._asked(page)
            if not page.is_filled:
                await self._write(b"event: end\ndata: %s\n\n" % content)
                return

    async def _asked(self, page: EventPage) -> Answer:
        try:
            return await self._ask(page)
        except LakewardenError as error:
            return refusal(error, "")

    async def _start(self, answer: Answer) -> None:
        headers = [each for each in answer[1] if each[0] == b"x-request-id"]
        # proxies such as nginx would collect what is to arrive at once
        headers += [(b"content-type", _STREAM), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
        self._mark((200, headers, b""))
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _deliver(self, page: EventPage) -> None:
        """The last `id` says where a reader resumes, also after events that others see."""
        parts = [b"id: %s\ndata: %s\n\n" % (_token(position), body) for position, body in page.events]
        last = page.events[-1][0] if page.events else self._told
        if page.position != last:
            parts.append(b"id: %s\n\n" % _token(page.position))
        self._told = page.position
        await self._write(b"".join(parts) or _ALIVE)

    async def _write(self, content: bytes) -> None:
        """No faster than the reader reads; the connection ends if they do not read at all."""
        with self._counted(len(content)) if len(content) > PIECE else nullcontext():
            for start in range(0, len(content), PIECE):
                body = content[start : start + PIECE]
                await self._send({"type": "http.response.body", "body": body, "more_body": True})


def _token(position: int) -> bytes:
    return next_token(str(position)).encode()


def _is_over(gone: "asyncio.Future[None]") -> bool:
    return gone.done() or health.STOPPING.is_set()


async def _gone(receive: Receive) -> None:
    """Returns when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
