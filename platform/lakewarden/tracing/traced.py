"""The application and its lane with a span for each request that is sampled; asgi.py imports it only if there are any.

A request that is not sampled costs a look at its headers and a random number.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from functools import partial
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind, StatusCode

from lakewarden.hot.routes import Answer, HotRequest, Repeat, WholeAnswer
from lakewarden.hot.sessions import Row
from lakewarden.http import health
from lakewarden.http.bodies import Receive
from lakewarden.http.bridge import Scope, raw_path
from lakewarden.http.lane import TRIED, Application, Lane
from lakewarden.http.repeats import Key, Repeats
from lakewarden.http.route_names import Labels
from lakewarden.http.whole_answers import WHOLE
from lakewarden.tracing.spans import SPAN, Spans, running

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_PARENT: Final = b"traceparent"
_ID: Final = b"x-request-id"
_FAILED: Final = 500
_NAMELESS: Final = "request"  # until its route is known


class Traced:
    def __init__(self, application: Application, spans: Spans, labels: Labels) -> None:
        self._application = application
        self._requests = _Requests(spans, labels)
        self._close = spans.close
        self.lane = _TracedLane(application.lane, self._requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, partial(self._closing, send))
            return
        if scope["type"] != "http" or scope.get(TRIED) is not None or raw_path(scope) in health.PATHS:
            await self._application(scope, receive, send)
            return
        parents = [value for name, value in scope["headers"] if name == _PARENT]
        span = self._requests.begin(parents[0] if len(parents) == 1 else None)
        if span is None:
            await self._application(scope, receive, send)
        else:
            await self._traced(span, scope, receive, send)

    async def _traced(self, span: Span, scope: Scope, receive: Receive, send: Send) -> None:
        note = partial(self._requests.note, span, scope["method"], raw_path(scope))

        async def noting(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                note(message["status"], message["headers"])
            await send(message)

        def noting_whole(send_whole: Callable[[Answer], bool], answer: Answer) -> bool:
            is_sent = send_whole(answer)
            if is_sent:
                note(answer[0], answer[1])
            return is_sent

        if (whole := scope.get(WHOLE)) is not None:
            scope[WHOLE] = partial(noting_whole, whole)
        with running(span):
            await self._application(scope, receive, noting)

    async def _closing(self, send: Send, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "lifespan.shutdown.complete":
            await asyncio.to_thread(self._close)
        await send(message)


class _Requests:
    def __init__(self, spans: Spans, labels: Labels) -> None:
        self._spans = spans
        self._labels = labels

    def begin(self, parent: bytes | None) -> Span | None:
        return self._spans.root(_NAMELESS, SpanKind.SERVER, parent=None if parent is None else parent.decode("latin-1"))

    def of(self, request: HotRequest) -> Span | None:
        return self.begin(request.headers.get(_PARENT))

    def note(self, span: Span, method: str, path: bytes, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The path is not noted, but which route it has: names are the callers' business."""
        identifier = next((value for name, value in headers if name.lower() == _ID), b"")
        self.say(span, self._labels.of(method, path), status, identifier)

    def say(self, span: Span, label: str, status: int, identifier: bytes) -> None:
        method, _, route = label.rpartition(" ")
        said: Mapping[str, str | int] = {
            "http.request.method": method or "_OTHER",
            "http.route": route,
            "http.response.status_code": status,
            "lakewarden.request_id": identifier.decode("latin-1"),
        }
        span.update_name(label)
        span.set_attributes(said)
        if status >= _FAILED:
            span.set_status(StatusCode.ERROR)

    def label(self, request: HotRequest) -> str:
        return self._labels.of(request.method, request.path)


class _TracedLane:
    """See `http.lane.Lane`."""

    def __init__(self, lane: Lane, requests: _Requests) -> None:
        self._lane = lane
        self._requests = requests
        self.repeats: Repeats = _TracedRepeats(lane.repeats, requests)
        self.request = lane.request
        self.may_repeat = lane.may_repeat

    def answer(self, request: HotRequest) -> Awaitable[Answer | None]:
        span = self._requests.of(request)
        answering = self._lane.answer(request)
        return answering if span is None else self._traced(span, request, answering)

    def again(self, repeat: Repeat, looking: asyncio.Future[Row | None] | None) -> Awaitable[Answer | None]:
        answering = self._lane.again(repeat, looking)
        if not isinstance(repeat, _TracedRepeat):
            return answering
        return self._traced(repeat.span, repeat.request, answering)

    async def _traced(self, span: Span, request: HotRequest, answering: Awaitable[Answer | None]) -> Answer | None:
        with running(span):
            answer = await answering
            if answer is None:
                span.update_name("left to Django")  # which begins a span of its own
            else:
                self._requests.note(span, request.method, request.path, answer[0], answer[1])
        return answer


class _TracedRepeats(Repeats):
    """A connection sends what is found here without asking the lane; see `http.measured`."""

    def __init__(self, repeats: Repeats, requests: _Requests) -> None:
        self._repeats = repeats
        self._requests = requests
        self.keeper = repeats.keeper  # type: ignore[method-assign]

    def find(self, key: Key) -> Repeat | None:
        found = self._repeats.find(key)
        span = None if found is None else self._requests.of(found.request)
        return found if found is None or span is None else _TracedRepeat(found, span, self._requests)

    def keep(self, key: Key, repeat: Repeat, *, size: int) -> None:
        self._repeats.keep(key, repeat.of if isinstance(repeat, _TracedRepeat) else repeat, size=size)


class _TracedRepeat:
    def __init__(self, of: Repeat, span: Span, requests: _Requests) -> None:
        self.of = of
        self.span = span
        self.request = of.request
        self.caller = of.caller
        self.is_known = of.is_known
        self.answer = of.answer
        self.sent = of.sent
        self._requests = requests

    def look_up(self) -> asyncio.Future[Row | None] | None:
        token = SPAN.set(self.span)
        try:
            return self.of.look_up()
        finally:
            SPAN.reset(token)

    def at_once(self, looking: asyncio.Future[Row | None]) -> tuple[WholeAnswer, bytes] | None:
        found = self.of.at_once(looking)
        if found is not None:
            self._requests.say(self.span, self._requests.label(self.request), found[0].status, found[1])
            self.span.end()
        return found
