"""The process's root application: the front door, then hot requests on the loop, and Django on a fixed pool of threads.

Paths reach Django percent-encoded as they came, so that an encoded slash in a name is not a separator.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakewarden.settings")
django.setup()

from lakewarden import backends, board, config  # noqa: E402 after setup
from lakewarden.audit import refusals  # noqa: E402 after setup
from lakewarden.errors import LakewardenError, PayloadTooLarge, Unavailable  # noqa: E402 after setup
from lakewarden.events import reader_places  # noqa: E402 after setup
from lakewarden.fair_shares import of_server  # noqa: E402 after setup
from lakewarden.hot import connections  # noqa: E402 after setup
from lakewarden.hot.fair_threads import FairThreads  # noqa: E402 after setup
from lakewarden.hot.routes import Answer, HotRequest, Repeat  # noqa: E402 after setup
from lakewarden.hot.sessions import Row  # noqa: E402 after setup
from lakewarden.http import event_streams, health  # noqa: E402 after setup
from lakewarden.http.answers import Unread  # noqa: E402 after setup
from lakewarden.http.arrived_bodies import ARRIVED  # noqa: E402 after setup
from lakewarden.http.background_writer import BackgroundWriter, PeriodicWrite  # noqa: E402 after setup
from lakewarden.http.bodies import BodyMemory, IncomingBody, Receive  # noqa: E402 after setup
from lakewarden.http.bridge import Bridge, Scope, raw_path  # noqa: E402 after setup
from lakewarden.http.call_recording import note_unauthenticated  # noqa: E402 after setup
from lakewarden.http.caller_identification import CallerIdentification, IdentifiedCaller  # noqa: E402 after setup
from lakewarden.http.conventions import CALLABLE, Cors, keep_private  # noqa: E402 after setup
from lakewarden.http.event_pages import PAGE, EventPage  # noqa: E402 after setup
from lakewarden.http.event_streams import Stream, Waiting  # noqa: E402 after setup
from lakewarden.http.lane import TRIED, Headers  # noqa: E402 after setup
from lakewarden.http.lane import Application as Root  # noqa: E402 after setup
from lakewarden.http.proxies import TrustedProxies  # noqa: E402 after setup
from lakewarden.http.refusal import CLOSE, refusal  # noqa: E402 after setup
from lakewarden.http.repeats import Repeats  # noqa: E402 after setup
from lakewarden.http.request import clean_request_id  # noqa: E402 after setup
from lakewarden.http.request_threads import THREADS  # noqa: E402 after setup
from lakewarden.http.route_names import Labels  # noqa: E402 after setup
from lakewarden.http.whole_answers import WHOLE  # noqa: E402 after setup
from lakewarden.ids import new_id  # noqa: E402 after setup
from lakewarden.networks import network_of  # noqa: E402 after setup
from lakewarden.urls import HOT_ROUTES, gateway  # noqa: E402 a broken route stops the start, not the first request
from lakewarden.usage import call_statistics  # noqa: E402 after setup

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_settings = config.current().server
_share = _settings.caller_share_percent
_cors = Cors(_settings.cors_origins)
_proxies = TrustedProxies(_settings.trusted_proxies)
_bridge = Bridge()
_bodies = of_server("bodies", _settings.bodies_in_flight_bytes, percent=_share)
_unread = Unread(of_server("answers", _settings.max_sending_bytes, percent=_share))

_callers = CallerIdentification(
    FairThreads(
        "verification",
        threads=_settings.verification_threads,
        queue=_settings.queue,
        percent=_share,
        patience_s=_settings.queue_timeout_s,
    )
)

_BODILESS = frozenset({"GET", "HEAD"})
_LAST_WORDS_S = 2  # what the writer may take at the end, and what the connections may


@dataclass(slots=True)
class _Request:
    scope: Scope
    path: bytes
    headers: Mapping[bytes, bytes]
    body: IncomingBody

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> Self:
        headers = dict(scope["headers"])
        body = IncomingBody(receive, headers, _settings)
        if scope["method"] in _BODILESS and not body.is_expected:
            body.is_complete = True
        elif (take := scope.get(ARRIVED)) is not None and (content := take()) is not None:
            body.accept(content)
        return cls(scope, raw_path(scope), headers, body)

    @property
    def address(self) -> str:
        """As coarsely as one sender can choose it."""
        return network_of((self.scope.get("client") or ("", 0))[0])

    @property
    def is_for_an_api(self) -> bool:
        return self.path.startswith(CALLABLE)

    def key(self) -> str:
        """The caller whose share of the server's resources a request uses, as far as it is known by now."""
        known = _callers.known(self.headers, self.address)
        return f"address {self.address}" if known is None else known.key


class Application:
    """ASGI's; and the lane that connections take before it for hot reads."""

    def __init__(self) -> None:
        self.lane = _Lane()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] == "websocket":
            await _socket(_proxies.heard(scope), receive, send)
            return
        request = _Request.of(_proxies.heard(scope), receive)
        answer: Answer | None = scope.get(TRIED)  # one that the lane cannot send: it is large
        if answer is None:
            try:
                answer = await self._first(request, receive, send)
            except ConnectionAbortedError:
                return  # the client is gone and the body is incomplete
            except LakewardenError as error:
                answer = _refused(error, request.headers, scope["method"])
                if not request.body.is_complete or isinstance(error, PayloadTooLarge):
                    answer[1].append(CLOSE)
            if answer is None:
                return  # a stream, which has ended
            _complete(request.path, request.headers, answer)
        await _unread.send(send, answer, body=request.body, caller=request.key, whole=scope.get(WHOLE))

    async def _first(self, request: _Request, receive: Receive, send: Send) -> Answer | None:
        waiting = event_streams.waiting(
            request.scope["method"], request.path, request.scope["query_string"], request.headers
        )
        if waiting is None or not request.body.is_complete or health.STOPPING.is_set():
            return await _answer(request)
        return await _waited(request, waiting, receive, send)


class _Lane:
    """See `http.lane.Lane`."""

    def __init__(self) -> None:
        self.repeats = Repeats(_settings.repeated_requests_bytes // board.current().processes, percent=_share)

    def request(self, method: bytes, target: bytes, headers: Headers, *, scheme: str, client: str) -> HotRequest | None:
        """None for what is not ordinary, and while answers wait to be read: then the caller's share is looked at."""
        heard = _proxies.heard({"headers": headers, "client": (client, 0), "scheme": scheme})
        given = dict(heard["headers"])
        if (
            len(given) != len(heard["headers"])
            or b"content-length" in given
            or b"transfer-encoding" in given
            or b"host" not in given
            or b"#" in target
            or health.STOPPING.is_set()
            or _unread.is_any
        ):
            return None
        path, _, query = target.partition(b"?")
        return HotRequest(method.decode("ascii"), heard["scheme"], path, query, given)

    async def answer(self, request: HotRequest) -> Answer | None:
        """None for what is Django's."""
        return await self._answered(request, _first(request))

    def may_repeat(self) -> bool:
        return not (_unread.is_any or health.STOPPING.is_set())

    async def again(self, repeat: Repeat, looking: asyncio.Future[Row | None] | None) -> Answer | None:
        return await self._answered(repeat.request, repeat.answer(looking))

    async def _answered(self, request: HotRequest, answering: Awaitable[Answer | None]) -> Answer | None:
        try:
            answer = await answering
        except LakewardenError as error:
            answer = _refused(error, request.headers, request.method)
        if answer is not None:
            _complete(request.path, request.headers, answer)
        return answer


def _gateway_route(method: str, path: bytes) -> str | None:
    asked = gateway.asked(path)
    return None if asked is None else gateway.label(asked, method)


def _made() -> Root:
    settings = config.current()
    made: Root = Application()
    if settings.tracing.endpoint is not None:
        from lakewarden.tracing.start import spans_of  # noqa: PLC0415 loads OpenTelemetry
        from lakewarden.tracing.traced import Traced  # noqa: PLC0415 as above

        made = Traced(made, spans_of(settings, role="server"), Labels(_gateway_route))
    if settings.metrics.port is not None:
        from lakewarden.http.measured import Measured  # noqa: PLC0415 loads Prometheus' client

        made = Measured(made, Labels(_gateway_route))
    return made


application = _made()


def _refused(error: LakewardenError, headers: Mapping[bytes, bytes], method: str) -> Answer:
    answer = refusal(error, clean_request_id(headers.get(b"x-request-id", b"").decode("latin-1")))
    return (*answer[:2], b"") if method == "HEAD" else answer


async def _socket(scope: Scope, receive: Receive, send: Send) -> None:
    asked = gateway.asked(raw_path(scope))
    if asked is not None and asked.what == "ws":
        await gateway.open_socket(asked, scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _answer(request: _Request) -> Answer:
    """Health first, so that nothing else can block it; then small bodies for anybody, larger ones for known callers."""
    if request.path in health.PATHS:
        return await health.answer(request.scope["method"], request.path)
    if health.STOPPING.is_set():
        raise Unavailable("The request was not started: this server is stopping")
    body = request.body
    body.ensure_allowed()
    if body.is_small:
        await body.read_small()
    asked = gateway.asked(request.path)
    if asked is not None:
        return _preflight(request) or await _ingested(request, asked)
    asking = None
    if _unread.is_any:
        asking = await _identified(request)
        _unread.ensure_room(asking.key)
    content = body.content() if body.is_complete and body.is_small else None
    if content is not None:
        answer = await _hot(request, content) or _preflight(request)
        if answer is not None:
            return answer
    asking = asking or await _identified(request)
    if content is None:
        _ensure_known(request, asking)
    memory = BodyMemory(_bodies, asking.key)
    try:
        if content is None:
            await body.read(memory)
            content = body.content()
        return await THREADS.run(asking.key, _begin, request.scope, content, memory)
    finally:
        memory.release()


async def _waited(request: _Request, waiting: Waiting, receive: Receive, send: Send) -> Answer | None:
    """The answer for a reader of events who waits for them; None after a stream."""
    ask = partial(_page, request)
    asking = await _identified(request)
    if asking.refusal is not None:
        return await _answer(request)
    if not waiting.is_stream:
        with reader_places.place(asking.key):
            return await event_streams.page_after(ask, wait_s=waiting.wait_s, receive=receive)
    stream = Stream(
        ask,
        send=send,
        receive=receive,
        place=lambda page: reader_places.place(page.reader or asking.key),
        mark=partial(_complete, request.path, request.headers),
        counted=partial(_unread.counted, asking.key),
    )
    return await stream.run()


async def _page(request: _Request, page: EventPage) -> Answer:
    """One page for a reader of events, who is identified again for each. Raises as `_answer`."""
    asking = await _identified(request)
    if request.is_for_an_api:
        _ensure_known(request, asking)
    memory = BodyMemory(_bodies, asking.key)
    try:
        return await THREADS.run(asking.key, _begin, {**request.scope, PAGE: page}, b"", memory)
    finally:
        memory.release()


async def _ingested(request: _Request, asked: gateway.Asked) -> Answer:
    """The gateway's answer; its health is for anybody."""
    asking = await _identified(request)
    if asking.refusal is not None and asked.what != "health":
        note_unauthenticated(request.scope, request.headers, asking.refusal)
    body, memory = request.body, BodyMemory(_bodies, asking.key)
    try:
        if not body.is_complete and asking.refusal is None:
            await body.read(memory)
        content = body.content() if body.is_complete else b""
        return await gateway.answer(asked, _hot_request(request, content), address=request.address)
    finally:
        memory.release()


def _begin(scope: Scope, body: bytes, memory: BodyMemory) -> Answer:
    """In a thread. While the request waited for it, answers to others that its caller had sent may have piled up."""
    if _unread.is_any:
        _unread.ensure_room(memory.caller)
    return _bridge.call(scope, body, memory)


async def _identified(request: _Request) -> IdentifiedCaller:
    """Who asks; a page of the console is for anybody."""
    if not request.is_for_an_api:
        return IdentifiedCaller(f"address {request.address}")
    return await _callers.identify(request.headers, request.address)


def _ensure_known(request: _Request, asking: IdentifiedCaller) -> None:
    """Nobody else's body is read any further. Raises NotAuthorized; PayloadTooLarge where nobody needs a token."""
    if not request.is_for_an_api:
        raise request.body.too_large(_settings.small_body_bytes)
    if asking.refusal is not None:
        note_unauthenticated(request.scope, request.headers, asking.refusal)
        raise asking.refusal


def _complete(path: bytes, asked: Mapping[bytes, bytes], answer: Answer) -> None:
    """Add the headers that all answers have in common."""
    _, headers, _ = answer
    keep_private(path, headers)
    if _cors.is_on:
        _cors.mark(path, asked, headers)


async def _hot(request: _Request, content: bytes) -> Answer | None:
    """The answer of a hot route, or None when the request is Django's."""
    scope = request.scope
    if bool(content) != (scope["method"] == "POST") or not request.path.startswith(b"/catalog/"):
        return None
    if TRIED in scope:
        return None  # on the lane
    if len(request.headers) != len(scope["headers"]) or b"host" not in request.headers:
        return (
            None  # a header that comes twice, or is required and missing, means one thing only: what Django makes of it
        )
    return await _first(_hot_request(request, content))


async def _first(asked: HotRequest) -> Answer | None:
    for route in HOT_ROUTES:
        answer = await route(asked)
        if answer is not None:
            return answer
    return None


def _hot_request(request: _Request, content: bytes) -> HotRequest:
    return HotRequest(
        method=request.scope["method"],
        scheme=request.scope.get("scheme", "http"),
        path=request.path,
        query=request.scope["query_string"],
        headers=request.headers,
        body=content,
    )


def _preflight(request: _Request) -> Answer | None:
    """The answer to a browser's question whether a page may call, None when the request is none."""
    if not _cors.is_on:
        return None
    allowed = _cors.preflight(request.scope["method"], request.path, request.headers)
    return None if allowed is None else (204, [*allowed, (b"x-request-id", str(new_id()).encode())], b"")


async def _lifespan(receive: Receive, send: Send) -> None:
    writer = BackgroundWriter(
        [
            PeriodicWrite("calls", config.current().usage.flush_interval_s, call_statistics.flush),
            PeriodicWrite("refusals", 1, refusals.flush_due, finish=refusals.flush),
        ]
    )
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            backends.authenticator()  # here it does not delay others
            writer.start()
            await gateway.recover()
        else:
            await _say_last_words(writer)
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _say_last_words(writer: BackgroundWriter) -> None:
    closing = asyncio.ensure_future(asyncio.gather(connections.close_all(), health.DATABASE.close(), gateway.close()))
    await asyncio.to_thread(writer.stop, timeout_s=_LAST_WORDS_S)
    await asyncio.wait({closing}, timeout=_LAST_WORDS_S)
