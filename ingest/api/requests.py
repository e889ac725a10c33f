"""The HTTP routes of the gateway, answered on the event loop; every answer has the headers of the rate limit."""

import hashlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec

from ingest import events, metrics, pipeline_series
from ingest.api import overview, tables
from ingest.api.callers import Sender
from ingest.api.intake import Decisions, said
from ingest.api.memory import IN_FLIGHT
from ingest.api.routes import Asked, label
from ingest.api.warehouses import find, find_for_events, shows_everything
from ingest.metrics import APPEND_SECONDS, BATCH_EVENTS
from ingest.protocol import Refused, now_ms
from ingest.rates import Buckets, TokenBucket
from ingest.services import flushes, leases, log, sources, storing
from ingest.services.appender import REQUESTS, Item
from ingest.services.fallback.file import FallbackFailed
from ingest.services.log import Outcome, Request, Verdict
from ingest.services.statements import LogUnavailable, Unstorable
from lakewarden import config
from lakewarden.context import RequestContext
from lakewarden.errors import (
    BadRequest,
    LakewardenError,
    MethodNotAllowed,
    PayloadTooLarge,
    TooManyRequests,
    Unavailable,
    Unprocessable,
)
from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.http.call_recording import note_call, note_refused
from lakewarden.http.codings import unpacked
from lakewarden.http.errors import as_lakewarden_error
from lakewarden.http.refusal import refusal
from lakewarden.paging import Page
from lakewarden.usage.call_counter import COUNTS

T = TypeVar("T")

logger = logging.getLogger(__name__)

_settings = config.current().ingest
_BUCKETS: Final = Buckets(_settings.messages_per_s, _settings.burst)
_METHODS: Final = {"cdc": "POST", "flush": "POST"}
_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain; charset=utf-8"
_PROMETHEUS: Final = b"text/plain; version=0.0.4; charset=utf-8"
_ATTEMPTS: Final = 4
_LONGEST_KEY: Final = 255
_SHOWN_SOURCES: Final = 1000


class _Body(msgspec.Struct):
    events: msgspec.Raw = msgspec.Raw(b"")


_BODY: Final = msgspec.json.Decoder(_Body)


class _PlainError(Exception):
    """An answer of this paper's own shape: `{"error": "<sentence>"}`."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


async def answer(asked: Asked, request: HotRequest, *, address: str) -> Answer:
    """Never raises for a request that is refused."""
    sender = Sender(request.header("authorization"), request.headers, address)
    identifier = sender.request_id()
    bucket = _BUCKETS.of(address)
    try:
        _check_method(asked, request)
        if asked.what == "health":
            _take(bucket)
            found = _answer(200, _TEXT, b"OK")
        else:
            context = await sender.context()
            bucket = _BUCKETS.of((context.caller.id,))  # a path could be spelled in many ways
            _take(bucket)
            found = await _HANDLERS[asked.what](asked, request, sender, context)
    except _PlainError as error:
        found = _json({"error": error.sentence}, status=error.status)
    except Exception as error:
        known = as_lakewarden_error(error)
        if isinstance(error, LogUnavailable):
            logger.warning("Request %s: the log is not available: %s", identifier, str(error).strip())
            known = Unavailable("The log of the events is not available; nothing was stored. Try again shortly")
        elif isinstance(error, Unstorable):
            known = BadRequest(f"The events cannot be stored: {error}")
        elif isinstance(error, FallbackFailed):
            known = Unavailable(f"The log of the events is not available ({error}); nothing was stored")
        elif not isinstance(error, LakewardenError):
            logger.exception("request %s failed", identifier)
        found = refusal(known, identifier)
    status, headers, content = found
    headers = [each for each in headers if each[0] != b"x-request-id"]
    headers += [(b"x-request-id", identifier.encode()), *_limits(bucket)]
    return status, headers, b"" if request.method == "HEAD" else content


async def _cdc(asked: Asked, request: HotRequest, sender: Sender, context: RequestContext) -> Answer:
    route = label(asked, "POST")
    warehouse_id = await _noted(context, route, find_for_events(asked, context), sender)
    body = _body(request)
    if not body.isascii():
        _ensure_utf8(body)
    try:
        raw = _BODY.decode(body).events
        if bytes(memoryview(raw)[:4]) in {b"", b"null", b"[]"}:
            raise _PlainError(400, "No events provided")
        found = events.parse(raw, _settings)
    except Refused as refused:
        raise _PlainError(400, refused.message) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _PlainError(400, f"The body is not valid: {error}") from None
    if not IN_FLIGHT.take(context.caller.id, len(body)):
        raise Unavailable("The server has as many events in memory as it can hold")
    try:
        decisions = Decisions(sender, warehouse_id, route)
        decisions.caller = context.caller.key
        decided = decisions.find(found.tables)
        if decided is not None:  # others are counted when they are made
            COUNTS.add(route, 200, project_id=decided[0].project_id, warehouse_id=warehouse_id)
        outcome = await _appended(warehouse_id, request, context.caller.id, found, decisions)
    finally:
        IN_FLIGHT.give_back(context.caller.id, len(body))
    if outcome.verdict is Verdict.FULL:
        sentence = f"Buffer overflow: maximum capacity reached ({_settings.buffer_bytes} bytes wait for the pipeline)"
        return _json({"error": sentence}, status=503, more=[(b"retry-after", b"5")])
    if outcome.verdict is Verdict.MANY:
        raise TooManyRequests(
            f"Too many requests are recognised if they come again: at most {_settings.max_requests_per_caller} of a "
            f"caller and {_settings.max_requests} of the warehouse in {_settings.recognised_s} s. Send more events in "
            "each, or use a socket",
            retry_after_s=_settings.request_span_s,
        )
    if outcome.verdict is Verdict.DIFFERENT:
        raise Unprocessable("The Idempotency-Key was used before for other events: use another one")
    is_new = outcome.verdict in {Verdict.APPENDED, Verdict.KEPT}
    if is_new:
        BATCH_EVENTS.of(warehouse_id).observe(found.count)
    return _json(
        {
            "success": True,
            "eventsReceived": found.count,
            "eventsAccepted": found.count if is_new else 0,
            "isDuplicate": not is_new,
        }
    )


def _ensure_utf8(body: bytes) -> None:
    """Rows are not decoded here, but must be readable later. Raises _PlainError."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise _PlainError(400, f"The body is not valid: it is not UTF-8 at byte {error.start}") from None


async def _appended(
    warehouse_id: UUID,
    request: HotRequest,
    principal: str,
    found: events.Events,
    decisions: Decisions,
) -> Outcome:
    digest = hashlib.sha256(found.content).digest()
    key = _key(request, digest)
    for _ in range(_ATTEMPTS):
        chosen = await decisions.decide(found.tables)
        source = f"http-cdc-{now_ms()}"
        sent = Request(principal, source, key, found.count, found.content, said(chosen), digest, len(found.content))
        outcome = await storing.store(REQUESTS, warehouse_id, decisions.caller, Item(sent, chosen))
        if outcome.verdict is not Verdict.UNKNOWN:
            return outcome
        decisions.forget(found.tables)
        await log.begin(warehouse_id)
    raise Unavailable("Rights or tables change all the time: send the request again")


def _key(request: HotRequest, digest: bytes) -> str:
    """What a repeated request has in common with the first. Raises BadRequest."""
    given = request.header("idempotency-key")
    if given is None:
        return f"content {digest.hex()} {(request.header('x-client-id') or '')[:_LONGEST_KEY]}"
    if not given or len(given) > _LONGEST_KEY or not given.isprintable():
        raise BadRequest(f"Invalid header Idempotency-Key: 1 to {_LONGEST_KEY} printable characters are expected")
    return f"key {given}"


def _body(request: HotRequest) -> bytes:
    body = unpacked(request.body, request.header("content-encoding") or "", limit=_settings.max_message_bytes)
    if len(body) > _settings.max_message_bytes:
        raise PayloadTooLarge(
            f"The body has {len(body)} bytes, at most {_settings.max_message_bytes} are allowed: send fewer events"
        )
    return body


async def _status(asked: Asked, request: HotRequest, sender: Sender, context: RequestContext) -> Answer:
    del request
    warehouse_id, is_shown = await _seen(asked, sender, context, label(asked, "GET"))
    members = await overview.status(warehouse_id)
    head = await log.head(warehouse_id)
    shown = await sources.listed(warehouse_id, of=None if is_shown else context.caller.id, limit=_SHOWN_SOURCES)
    return _json(
        {
            **members,
            "pipeline": pipeline_series.described(await flushes.pipeline(warehouse_id), shows_error=is_shown),
            "sourceStates": shown,
            "dedupStats": {
                "totalChecks": head.checks if head else 0,
                "duplicatesFound": head.duplicates if head else 0,
                "entriesTracked": await sources.tracked(warehouse_id),
            },
        }
    )


async def _metrics(asked: Asked, request: HotRequest, sender: Sender, context: RequestContext) -> Answer:
    del request
    warehouse_id, _ = await _seen(asked, sender, context, label(asked, "GET"))
    head = await log.head(warehouse_id)
    connected = await leases.count(warehouse_id)
    sample = metrics.sample
    series = [
        sample("dolake_buffer_events", "gauge", "Number of events in buffer", head.buffered_events if head else 0),
        sample("dolake_buffer_bytes", "gauge", "Buffer size in bytes", head.buffered_bytes if head else 0),
        sample(
            "dolake_buffer_utilization",
            "gauge",
            "Buffer utilization ratio",
            round(overview.utilization(head), 4) if head else 0,
        ),
        sample("dolake_connected_sources", "gauge", "Number of connected source DOs", connected),
        sample("dolake_dedup_checks", "counter", "Total deduplication checks", head.checks if head else 0),
        sample("dolake_dedup_duplicates", "counter", "Total duplicates found", head.duplicates if head else 0),
        *_of_the_fallback_file(warehouse_id),
        BATCH_EVENTS.of(warehouse_id).lines(),
        APPEND_SECONDS.of(warehouse_id).lines(),
        *pipeline_series.series(await flushes.pipeline(warehouse_id)),
    ]
    return _answer(200, _PROMETHEUS, metrics.page(series))


def _of_the_fallback_file(warehouse_id: UUID) -> list[list[str]]:
    if storing.FALLBACK is None:
        return []
    sample, prefix = metrics.sample, "lakewarden_ingest_fallback"
    size, refused = storing.FALLBACK.waiting_bytes_of(warehouse_id), storing.FALLBACK.refused[warehouse_id]
    return [
        sample(f"{prefix}_bytes", "gauge", "Bytes in this process's fallback file that wait for the log", size),
        sample(f"{prefix}_refused", "counter", "Batches of the fallback file that the log did not take", refused),
    ]


async def _analytics(asked: Asked, request: HotRequest, sender: Sender, context: RequestContext) -> Answer:
    page = Page.parse(dict(parse_qsl(request.query.decode("latin-1"))))

    async def look() -> dict[str, Any]:
        warehouse_id = await find(asked, context)
        return await sources.analytics(warehouse_id) | await tables.read(context, warehouse_id, page)

    return _json(await _noted(context, label(asked, "GET"), look(), sender))


async def _flush(asked: Asked, request: HotRequest, sender: Sender, context: RequestContext) -> Answer:
    del request
    warehouse_id, is_shown = await _seen(asked, sender, context, label(asked, "POST"))
    result = await flushes.flush(warehouse_id, requested_by=context.caller.id)
    return _json(result if is_shown else flushes.without_names(result))


async def _seen(asked: Asked, sender: Sender, context: RequestContext, route: str) -> tuple[UUID, bool]:
    """The warehouse, and whether the caller may see what others do in it."""

    async def look() -> tuple[UUID, bool]:
        warehouse_id = await find(asked, context)
        return warehouse_id, await shows_everything(context, warehouse_id)

    return await _noted(context, route, look(), sender)


async def _noted(context: RequestContext, route: str, work: Awaitable[T], sender: Sender) -> T:
    """What `work` returns; counted, and its decisions noted for the audit."""
    try:
        found = await work
    except LakewardenError as error:
        note_refused(context, route, error, address=sender.address)
        raise
    note_call(context, route, 200)
    return found


def _check_method(asked: Asked, request: HotRequest) -> None:
    expected = _METHODS.get(asked.what, "GET")
    if request.method != expected and (expected, request.method) != ("GET", "HEAD"):
        raise MethodNotAllowed(f"{request.method} is not allowed here; allowed is {expected}")
    if asked.what == "ws":
        raise BadRequest("This is the address of a WebSocket: send the headers of an upgrade")


def _take(bucket: TokenBucket) -> None:
    """Raises TooManyRequests."""
    if not bucket.take():
        raise TooManyRequests(
            f"Too many requests: {_settings.messages_per_s} per second are allowed, {_settings.burst} of them at once",
            retry_after_s=max(1, math.ceil(bucket.next_in_s)),
        )


def _limits(bucket: TokenBucket) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-ratelimit-limit", str(_settings.messages_per_s).encode()),
        (b"x-ratelimit-remaining", str(min(bucket.remaining, _settings.messages_per_s)).encode()),
        (b"x-ratelimit-reset", str(math.ceil(time.time() + bucket.full_in_s)).encode()),
    ]


def _json(members: Mapping[str, Any], *, status: int = 200, more: list[tuple[bytes, bytes]] | None = None) -> Answer:
    found = _answer(status, _JSON, msgspec.json.encode(members))
    found[1].extend(more or ())
    return found


def _answer(status: int, kind: bytes, content: bytes) -> Answer:
    return status, [(b"content-type", kind), (b"content-length", str(len(content)).encode())], content


_Handler = Callable[[Asked, HotRequest, Sender, RequestContext], Awaitable[Answer]]
_HANDLERS: Final[Mapping[str, _Handler]] = {
    "cdc": _cdc,
    "status": _status,
    "metrics": _metrics,
    "flush": _flush,
    "analytics/status": _analytics,
}
