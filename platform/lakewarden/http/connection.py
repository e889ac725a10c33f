"""An HTTP connection with limits: on headers, time, unread answers, and the number of connections.

uvicorn has none of these limits. `lakewarden.serving` calls `sweep` of each connection once a second.
"""

import asyncio
from asyncio import BaseTransport
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from lakewarden import config
from lakewarden.errors import BadRequest, HeadersTooLarge, LakewardenError, RequestTimedOut, Unavailable
from lakewarden.hot.routes import Answer, HotRequest, Repeat
from lakewarden.hot.sessions import Row
from lakewarden.http.answers import PIECE
from lakewarden.http.arrived_bodies import ARRIVED, arrived
from lakewarden.http.lane import BARE, TRIED, Headers, Lane, LaneCycle, head_of, repeated
from lakewarden.http.refusal import CLOSE, last_words, refusal
from lakewarden.http.repeats import Key, headers_of, key_of
from lakewarden.http.sockets import is_socket
from lakewarden.http.whole_answers import WHOLE, WholeAnswer
from lakewarden.ids import new_id_text
from lakewarden.networks import network_of

MAX_HEADER_BYTES: Final = 64 * 1024
"""A token may take 16 KiB of this."""
MAX_HEADERS: Final = 200
MAX_PIPELINED: Final = 32
"""Requests that may be sent on a connection before the first of them is answered."""
SPARE: Final = 32
"""Further connections, for health checks only: a server with too many connections must not be restarted for it."""

Application = Callable[[Any, Any, Any], Awaitable[None]]

_BODILESS: Final = frozenset({b"GET", b"HEAD"})


class BoundedConnection(HttpToolsProtocol):
    """Answers 431 (RFC 6585, section 5) if the headers exceed the limits, 408 if they do not
    end in time, and closes.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 uvicorn's
        super().__init__(*arguments, **options)
        self._limits = config.current().server
        self._lane: Lane | None = getattr(self.app, "lane", None)
        self._opened = self.loop.time()
        self._unparsed = 0
        """Bytes since the parser last reported something: of headers, of a trailer, of a chunk's extension."""
        self._error: LakewardenError | None = None
        self._is_in_head = False
        self._head_since: float | None = None
        self._idle_since: float | None = None
        """When the last answer was complete, if nothing was received since."""
        self._unread = 0
        self._unread_since: float | None = None
        self._is_between = True
        """Whether the parser has read nothing yet, or only whole requests, of which the last took the lane."""
        self._begun = 0
        """Requests that began with the last bytes received."""
        self._has_ended = False
        """Whether the newest of them has."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn narrows it
        if len(self.connections) > self._limits.max_connections:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        key = self._key(data)
        if key is not None and self._repeat(key, data):
            return
        self._unparsed += len(data)
        self._is_between, self._begun = False, 0
        super().data_received(data)
        if self._unparsed > MAX_HEADER_BYTES and not self.transport.is_closing():
            self._refuse(_too_large())
        if self._begun == 1 and self._has_ended and self._is_on_lane():
            self._is_between, self.cycle.key = True, key  # type: ignore[attr-defined]  # it is a LaneCycle

    def _key(self, data: bytes) -> Key | None:
        """What a request with the same bytes is known by; None where they may mean something else."""
        if not self._is_between or self._lane is None or self._is_busy():
            return None
        return key_of(data, client=self.client[0] if self.client else "", scheme=self.scheme or "http")

    def _repeat(self, key: Key, data: bytes) -> bool:
        """Begin to answer a request that came before, without the parser: it would read the same again."""
        assert self._lane is not None  # noqa: S101 else there is no key
        repeat = self._lane.repeats.find(key) if self._lane.may_repeat() else None
        if repeat is None:
            return False
        self._unset_keepalive_if_required()
        self._head_since = None
        cycle = self.cycle = LaneCycle(key)  # type: ignore[assignment]  # it has all that uvicorn looks at
        looking = repeat.look_up()
        if looking is None:
            self._begin_task(self._go_on(cycle, repeat, data, None))
        else:
            looking.add_done_callback(partial(self._looked_up, cycle, repeat, data))
        return True

    def _looked_up(self, cycle: LaneCycle, repeat: Repeat, data: bytes, looking: asyncio.Future[Row | None]) -> None:
        if cycle.disconnected or self.transport.is_closing():
            return
        found = repeat.at_once(looking) if cycle.keep_alive and not self.flow.write_paused else None
        if found is None:
            self._begin_task(self._go_on(cycle, repeat, data, looking))
            return
        cycle.response_complete = True
        self.transport.write(repeated(*found, self.server_state.default_headers))
        self.on_response_complete()

    async def _go_on(
        self, cycle: LaneCycle, repeat: Repeat, data: bytes, looking: asyncio.Future[Row | None] | None
    ) -> None:
        assert self._lane is not None  # noqa: S101 as above
        await self._answer_on_lane(cycle, repeat.request, self._lane.again(repeat, looking), headers_of(data), [repeat])

    def _begin_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self._begun += 1
        self._has_ended = False
        self.url, self.headers, self.expect_100_continue = b"", [], False  # the scope is made for whom it is for

    def on_headers_complete(self) -> None:
        unparsed, self._unparsed, self._head_since, self._is_in_head = self._unparsed, 0, None, False
        if len(self.headers) > MAX_HEADERS or (unparsed > MAX_HEADER_BYTES and self._head_bytes() > MAX_HEADER_BYTES):
            self._error = _too_large()
        elif len(self.pipeline) >= MAX_PIPELINED:
            self._error = BadRequest(f"More than {MAX_PIPELINED} requests were sent before the first was answered")
        if self._error is not None:
            raise httptools.HttpParserError  # uvicorn calls `send_400_response`
        asked = self._for_lane()
        if asked is None:
            self._begin_cycle()
        else:
            cycle = LaneCycle()
            self.cycle = cycle  # type: ignore[assignment]  # it has all that uvicorn looks at
            self._begin_task(self._take_lane(cycle, asked, self.headers))

    def _is_on_lane(self) -> bool:
        """Whether the newest request is."""
        return isinstance(self.cycle, LaneCycle)

    def _begin_cycle(self) -> None:
        """As uvicorn handles a request."""
        url, headers, is_awaited = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, is_awaited
        self.headers[:] = headers
        super().on_headers_complete()

    def _for_lane(self) -> HotRequest | None:
        """The request that has just begun, if it may take the lane: it is the only one, and ordinary."""
        parser, method = self.parser, self.parser.get_method()
        if (
            self._lane is None
            or method not in _BODILESS
            or not (self.url.startswith(BARE) and self.url.isascii())
            or self._is_busy()
            or self.expect_100_continue
            or parser.should_upgrade()
            or not parser.should_keep_alive()
            or parser.get_http_version() != "1.1"
        ):
            return None
        client = self.client[0] if self.client else ""
        return self._lane.request(method, self.url, self.headers, scheme=self.scheme or "http", client=client)

    async def _take_lane(self, cycle: LaneCycle, asked: HotRequest, headers: Headers) -> None:
        assert self._lane is not None  # noqa: S101 it has made the request
        kept: list[Repeat] = []
        if cycle.key is not None and b"x-request-id" not in asked.headers:
            asked = asked._replace(keep=self._lane.repeats.keeper(cycle.key, kept.append))
        await self._answer_on_lane(cycle, asked, self._lane.answer(asked), headers, kept)

    async def _answer_on_lane(
        self,
        cycle: LaneCycle,
        asked: HotRequest,
        answering: Awaitable[Answer | None],
        headers: Headers,
        kept: list[Repeat],
    ) -> None:
        """`kept` holds what the request may come again as, when it has been answered."""
        extra: dict[str, Any] = {}
        try:
            answer = await answering
            extra[TRIED] = answer
        except Exception:  # noqa: BLE001 the ordinary path tries again, and reports an error
            answer = None
        if cycle.disconnected or self.transport.is_closing():
            _let_go(kept)
            return
        head = None
        if answer is not None and not self.flow.write_paused and len(answer[2]) <= PIECE:
            head = head_of(answer, self.server_state.default_headers, keep_alive=cycle.keep_alive)
        if answer is None or head is None:
            _let_go(kept)
            self._leave_lane(cycle, asked, headers, extra)
            return
        cycle.response_complete = True
        self.transport.write(head + answer[2])
        if kept and cycle.key is not None and self._lane is not None:
            self._lane.repeats.keep(cycle.key, kept[0], size=kept[0].sent(answer))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _leave_lane(self, left: LaneCycle, asked: HotRequest, headers: Headers, extra: dict[str, Any]) -> None:
        """Go on as uvicorn does. The parser may be at a later request by now."""
        scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
            "headers": headers,
            "state": self.app_state.copy(),
            "method": asked.method,
            "path": unquote(asked.path.decode("ascii")),
            "raw_path": asked.path,
            "query_string": asked.query,
            **extra,
        }
        cycle = RequestResponseCycle(
            scope=scope,  # type: ignore[arg-type]  # uvicorn's types of ASGI are its own
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=left.keep_alive,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        cycle.message_event.set()  # for who waits for the end of the body
        if self._is_on_lane():
            self.cycle = cycle  # else it is that of a later request already
        self._start_asgi_task(cycle, self.app)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Application) -> None:
        cycle.scope[WHOLE] = WholeAnswer(cycle).send  # type: ignore[typeddict-unknown-key]
        cycle.scope[ARRIVED] = arrived(cycle)  # type: ignore[typeddict-unknown-key]
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        self._has_ended = True
        if not self._is_on_lane():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """As uvicorn's, without a timer for each answer: `sweep` closes connections that are not used."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._idle_since = self.loop.time()

    def _unset_keepalive_if_required(self) -> None:
        self._idle_since = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._error or BadRequest(msg))

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def sweep(self, now: float) -> None:
        """Close the connection if the client does not send headers or read answers in time;
        `now` is the loop's time.
        """
        is_over = self.transport.is_closing() or not self._is_busy()
        unread, before = self.transport.get_write_buffer_size(), self._unread
        self._unread = unread
        if unread and (is_over or self.flow.write_paused):
            if self._unread_since is None or unread < before:
                self._unread_since = now
            if now - self._unread_since >= self._limits.write_timeout_s:
                self.transport.abort()
            return
        self._unread_since = None
        if not is_over or self.transport.is_closing():
            return
        if self._idle_since is not None and not self._is_in_head:
            if now - self._idle_since >= self._limits.keep_alive_timeout_s:
                self.transport.close()
            return
        self._head_since = self._head_since or now
        if now - self._head_since < self._limits.header_timeout_s:
            return
        if self._is_in_head:
            timeout = f"{self._limits.header_timeout_s:g} s"
            self._refuse(RequestTimedOut(f"The request's headers did not arrive within {timeout}"))
        else:
            self.transport.close()

    def _is_busy(self) -> bool:
        """Whether a request is in progress."""
        return self.cycle is not None and not self.cycle.response_complete

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse(self, error: LakewardenError) -> None:
        if self._is_busy():
            self.transport.abort()  # an answer written now would be taken for the answer to the request in progress
            return
        self.transport.write(last_words(error))
        self.transport.close()

    def _make_room(self) -> None:
        """Close a connection on which no request has begun, of the address with the most connections.

        If there is none, this connection may only be used for health checks.
        """
        others = [each for each in self.connections if isinstance(each, BoundedConnection) and each is not self]
        held = Counter(each.address for each in others)
        waiting = (each for each in others if each.is_waiting())
        first = min(waiting, key=lambda each: (-held[each.address], *each.merit()), default=None)
        if first is not None:
            first.transport.abort()
        elif len(self.connections) > self._limits.max_connections + SPARE:
            self._refuse(self._is_full())
        else:
            self.app, self._lane = self._only_health(self.app), None

    @property
    def address(self) -> str:
        """The client's network, because one sender can use many addresses in it; behind a proxy it is the proxy's."""
        return network_of(self.client[0] if self.client else "")

    def is_waiting(self) -> bool:
        """Whether it can be closed without interrupting work: it has no request, or one whose body is still missing."""
        if self.transport.is_closing():
            return False
        return not self._is_busy() or (self._is_body_awaited() and not self.pipeline)

    def merit(self) -> tuple[bool, bool, float]:
        """A sort key for closing: idle ones first, of them those that never sent a request, of them the oldest."""
        return self._is_busy(), self.cycle is not None, self._opened

    def _is_body_awaited(self) -> bool:
        return self.cycle.more_body and not self.cycle.response_started

    def _is_full(self) -> LakewardenError:
        return Unavailable(f"The server has {self._limits.max_connections} connections already, and all are in use")

    def _only_health(self, application: Application) -> Application:
        async def answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 ASGI's
            if scope["path"].startswith("/health"):
                await application(scope, receive, send)
                return
            status, headers, content = refusal(self._is_full(), new_id_text())
            await send({"type": "http.response.start", "status": status, "headers": [*headers, CLOSE]})
            await send({"type": "http.response.body", "body": content})

        return answer

    def _should_upgrade_to_ws(self) -> bool:
        return is_socket(self.url)

    def _unsupported_upgrade_warning(self) -> None:
        """Replaces uvicorn's warning: anybody can request an upgrade (h2c, websocket), which is simply ignored."""


def _let_go(kept: list[Repeat]) -> None:
    for each in kept:
        each.sent(None)


def _too_large() -> HeadersTooLarge:
    return HeadersTooLarge(
        f"The request's headers are larger than {MAX_HEADER_BYTES} bytes, or more than {MAX_HEADERS}"
    )
