"""Where spans begin inside of a process: replaces functions and methods by ones that look for a span first.

It does so once, at the start, and only if traces are configured: otherwise the functions are what they are.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from importlib import import_module
from inspect import getmembers, iscoroutinefunction, isfunction, signature
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind

from lakewarden.events import log
from lakewarden.events.served_sink import ServedSink
from lakewarden.hot.batches import Batches
from lakewarden.hot.coalescer import Coalescer
from lakewarden.hot.fair_threads import FairThreads
from lakewarden.hot.sessions import Session
from lakewarden.hot.statements import Statement
from lakewarden.postgres.bounded import CURSORS
from lakewarden.secrets.vault_session import VaultSession
from lakewarden.signed_posts import SignedPosts
from lakewarden.storage.bounded import BoundedStorage
from lakewarden.storage.token_services import TokenService
from lakewarden.tasks import holding
from lakewarden.tracing.spans import SPAN, Spans, outgoing, recorded, running

Said = tuple[str, Mapping[str, str | int]]
"""A span's name and attributes."""
_Function = Callable[..., Any]
_Say = Callable[..., Said]

_ACCESS: Final = "access "
_STORE: Final = ("write_new", "read", "delete", "is_empty", "ensure_there", "client_access", "make_folder", "remove")
_VERB: Final = re.compile(r"\W*(\w+)")
_TABLE: Final = re.compile(r"\b(?:from|into|update|join)\s+\"?([a-z_]\w*)\b(?!\()", re.IGNORECASE)
_SEEN: Final = 4000  # texts: Django writes a new one for each number of values in a list


def install(spans: Spans, *, access: Sequence[str], appends: str | None, by_openfga: bool) -> None:
    """`access` names modules whose functions look up and authorize; `appends` the function that stores change data."""
    here = _Places(spans)
    for module in map(import_module, access):
        for name, found in getmembers(module, isfunction):
            is_own = found.__module__ == module.__name__ and not name.startswith("_")
            if is_own and next(iter(signature(found).parameters), None) == "context":
                here.access(module, name)
    for cursor in CURSORS:
        here.step(cursor, "execute", lambda _, query, *_a, **_k: _statement(query), SpanKind.CLIENT)
        here.step(cursor, "executemany", lambda _, query, *_a, **_k: _statement(query), SpanKind.CLIENT)
    here.step(Session, "fetch", lambda _, lookup, *_a: _statement(lookup.text), SpanKind.CLIENT)
    here.step(Statement, "fetch_one", lambda self, *_a: _statement(self._text), SpanKind.CLIENT)
    here.replace(Coalescer, "ask", here.coalesced)
    for name in _STORE:
        here.step(BoundedStorage, name, _store(name), SpanKind.CLIENT)
    for name in ("run", "begin"):
        here.replace(FairThreads, name, _carried_along)
    marks: dict[int, Span] = {}
    here.replace(Batches, "do", lambda original: _marked(original, marks))
    here.replace(Batches, "_answer", lambda original: here.batched(original, marks))
    here.within(TokenService, "asking", "ask token service")
    here.step(VaultSession, "call", lambda *_a: ("call Vault", {}), SpanKind.CLIENT)
    here.replace(SignedPosts, "_request", _with_parent)  # inside of the span that it names
    here.step(SignedPosts, "_request", lambda self, *_a: (f"POST {self._to.what}", {}), SpanKind.CLIENT)
    if by_openfga:
        from openfga_sdk.sync.rest import RESTClientObject  # noqa: PLC0415 it takes time to load

        here.replace(RESTClientObject, "request", _openfga_with_parent)
        here.step(RESTClientObject, "request", lambda _, method, *_a, **_k: (f"{method} OpenFGA", {}), SpanKind.CLIENT)
    here.begin(holding, "announced", _task, SpanKind.CONSUMER)
    here.begin(ServedSink, "_send_batch", _delivery, SpanKind.PRODUCER)
    here.begin(log, "append_new", lambda *_a: ("number events", {}), SpanKind.INTERNAL)
    if appends is not None:
        place, function = appends.rsplit(".", 1)
        here.begin(import_module(place), function, lambda *_a, **_k: ("append change data", {}), SpanKind.INTERNAL)


class _Places:
    def __init__(self, spans: Spans) -> None:
        self._spans = spans

    def replace(self, owner: object, name: str, make: Callable[[_Function], _Function]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, wraps(original)(make(original)))

    def step(self, owner: object, name: str, say: _Say, kind: SpanKind) -> None:
        """A span for each call in a request that is recorded."""

        def begun(arguments: tuple[Any, ...], named: dict[str, Any]) -> Span | None:
            above = recorded()
            return None if above is None else self._spans.child(above, *_ordered(say(*arguments, **named), kind))

        self._around(owner, name, begun)

    def begin(self, owner: object, name: str, say: _Say, kind: SpanKind) -> None:
        """As `step`; a trace of its own where there is none, if it is sampled."""

        def begun(arguments: tuple[Any, ...], named: dict[str, Any]) -> Span | None:
            above = SPAN.get()
            if above is not None and above.is_recording():
                return self._spans.child(above, *_ordered(say(*arguments, **named), kind))
            label, attributes = say(*arguments, **named)
            span = self._spans.root(label, kind) if above is None else None
            if span is not None:
                span.set_attributes(attributes)
            return span

        self._around(owner, name, begun, is_declared=True)  # who is given it may look at it

    def within(self, owner: object, name: str, label: str) -> None:
        """A span for each block of a context manager in a request that is recorded."""

        def make(original: _Function) -> _Function:
            @contextmanager
            def begun(*arguments: object) -> Iterator[Any]:
                above = recorded()
                if above is None:
                    with original(*arguments) as given:
                        yield given
                    return
                with running(self._spans.child(above, label, SpanKind.CLIENT, {})), original(*arguments) as given:
                    yield given

            return begun

        self.replace(owner, name, make)

    def access(self, owner: object, name: str) -> None:
        """Of functions that call each other, the outermost has a span."""

        def begun(_arguments: tuple[Any, ...], _named: dict[str, Any]) -> Span | None:
            above = recorded()
            if above is None or getattr(above, "name", "").startswith(_ACCESS):
                return None
            return self._spans.child(above, _ACCESS + name, SpanKind.INTERNAL, {})

        self._around(owner, name, begun)

    def _around(
        self,
        owner: object,
        name: str,
        begun: Callable[[tuple[Any, ...], dict[str, Any]], Span | None],
        *,
        is_declared: bool = False,
    ) -> None:
        """`is_declared`: a coroutine function stays one by its looks, which costs a coroutine more for each call."""

        def make(original: _Function) -> _Function:
            async def awaited(span: Span, answering: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 the original's
                with running(span):
                    return await answering()

            def asynchronous(*arguments: Any, **named: Any) -> Awaitable[Any]:  # noqa: ANN401 the original's
                span = begun(arguments, named)
                if span is None:
                    answer: Awaitable[Any] = original(*arguments, **named)
                    return answer
                return awaited(span, lambda: original(*arguments, **named))

            def synchronous(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 the original's
                span = begun(arguments, named)
                if span is None:
                    return original(*arguments, **named)
                with running(span):
                    return original(*arguments, **named)

            async def declared(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 the original's
                return await asynchronous(*arguments, **named)

            if not iscoroutinefunction(original):
                return synchronous
            return declared if is_declared else asynchronous

        self.replace(owner, name, make)

    def coalesced(self, ask: _Function) -> _Function:
        """The statement answers others, too, so that it is a step of none: each waits for it by its own span."""

        def asking(self_: Coalescer, key: tuple[object, ...]) -> asyncio.Future[Any]:
            above = recorded()
            if above is None:
                unseen: asyncio.Future[Any] = ask(self_, key)
                return unseen
            span = self._spans.child(above, *_ordered(_statement(self_.statement.text), SpanKind.CLIENT))
            looking: asyncio.Future[Any] = _without_span(ask, self_, key)
            looking.add_done_callback(lambda _: span.end())
            return looking

        return asking

    def batched(self, answer: _Function, marks: Mapping[int, Span]) -> _Function:
        """Work for several requests belongs to the first of them that is recorded."""

        async def answering(self_: object, batch: Sequence[tuple[object, object]]) -> None:
            above = next((marks[id(item)] for item, _ in batch if id(item) in marks), None) if marks else None
            if above is None or not above.is_recording():
                SPAN.set(None)  # in the task of all batches, which the first item's request has begun
                await answer(self_, batch)
                return
            with running(self._spans.child(above, "batch", SpanKind.INTERNAL, {"lakewarden.batch.size": len(batch)})):
                await answer(self_, batch)

        return answering


def _ordered(said: Said, kind: SpanKind) -> tuple[str, SpanKind, Mapping[str, str | int]]:
    return said[0], kind, said[1]


def _without_span(function: _Function, *arguments: object) -> Any:  # noqa: ANN401 the function's
    """Tasks that it makes have none."""
    token = SPAN.set(None)
    try:
        return function(*arguments)
    finally:
        SPAN.reset(token)


def _carried_along(hand_over: _Function) -> _Function:
    """The work that is handed over to a thread goes on with the span."""

    def handing(self_: FairThreads, caller: str, work: _Function, *arguments: object) -> Any:  # noqa: ANN401 the original's
        span = SPAN.get()
        if span is None:
            return hand_over(self_, caller, work, *arguments)

        def working(*given: object) -> Any:  # noqa: ANN401 the work's
            token = SPAN.set(span)
            try:
                return work(*given)
            finally:
                SPAN.reset(token)

        return hand_over(self_, caller, working, *arguments)

    return handing


def _marked(do: _Function, marks: dict[int, Span]) -> _Function:
    """Remembers whose span an item is of, until it is done."""

    async def marking(self_: object, item: object, span: Span, caller: str) -> Any:  # noqa: ANN401 the original's
        marks[id(item)] = span
        token = SPAN.set(None)
        try:
            return await do(self_, item, caller=caller)
        finally:
            SPAN.reset(token)
            marks.pop(id(item), None)

    def doing(self_: object, item: object, *, caller: str) -> Awaitable[Any]:
        span = recorded()
        if span is None:
            answer: Awaitable[Any] = do(self_, item, caller=caller)
            return answer
        return marking(self_, item, span, caller)

    return doing


def _with_parent(request: _Function) -> _Function:
    def requesting(self_: SignedPosts, address: str, body: bytes, headers: dict[str, str]) -> Any:  # noqa: ANN401 the original's
        return request(self_, address, body, outgoing(headers))

    return requesting


def _openfga_with_parent(request: _Function) -> _Function:
    def requesting(self_: object, *arguments: Any, headers: dict[str, str] | None = None, **named: Any) -> Any:  # noqa: ANN401
        return request(self_, *arguments, headers=outgoing(headers or {}), **named)

    return requesting


def _statement(text: object) -> Said:
    if isinstance(text, bytes):
        text = text.decode()
    return _summary(text) if isinstance(text, str) else ("SQL", {})


@lru_cache(maxsize=_SEEN)
def _summary(text: str) -> Said:
    """Verb and first table: a statement's text may hold values, and its parameters do."""
    verb, table = _VERB.match(text), _TABLE.search(text)
    operation = verb[1].upper() if verb else "SQL"
    summary = f"{operation} {table[1]}" if table else operation
    return summary, {"db.system.name": "postgresql", "db.operation.name": operation, "db.query.summary": summary}


def _store(name: str) -> _Say:
    said = f"store {name}", {"lakewarden.storage.operation": name}
    return lambda *_a, **_k: said


def _task(_call_next: object, context: Any, _worker: object) -> Said:  # noqa: ANN401 procrastinate's JobContext
    return f"task {context.job.task_name}", {"lakewarden.queue": context.job.queue}


def _delivery(served: ServedSink, messages: Sequence[object]) -> Said:
    return "deliver events", {"lakewarden.sink": served._name, "messaging.batch.message_count": len(messages)}  # noqa: SLF001
