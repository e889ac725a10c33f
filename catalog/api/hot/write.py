"""A hot write's life: its context, the room that it needs, and what becomes of a request that fails.

What `perform` leaves alone, and what Django knows better how to refuse, is done by Django: nothing was changed by then.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from django.utils.encoding import escape_uri_path, iri_to_uri

from catalog.api.hot.answers import Header, accepted, failed, stored
from catalog.api.hot.call import Handler, KnownCaller
from catalog.services.pointer import Stored
from lakewarden import config
from lakewarden.context import RequestContext
from lakewarden.errors import BadRequest, CommitStateUnknown, ContractViolated, Forbidden, LakewardenError, Unavailable
from lakewarden.fair_shares import Shares
from lakewarden.hot.coalescer import Key
from lakewarden.hot.fair_threads import too_many
from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.http.call_recording import note_call, note_denial
from lakewarden.http.json_bodies import decode
from lakewarden.http.repeatable import with_key
from lakewarden.http.request import clean_request_id, context_of
from lakewarden.http.responses import accepts_gzip
from lakewarden.idempotency.outcomes import RepeatedRequest
from lakewarden.memory import off_loop

T = TypeVar("T")

_LARGEST: Final = 16 * 1024  # bytes of a body: to open more takes milliseconds, in which nobody else is answered
_LARGE: Final = 512 * 1024  # bytes that an answer which is not stored as it is sent moves: more is a thread's work

_settings = config.current().server
IN_PROGRESS: Final = Shares(_settings.threads + _settings.queue, percent=_settings.caller_share_percent)
"""As many requests as may run or wait in threads, and as fairly divided."""


class WriteCall(NamedTuple):
    """`key` holds the route's variables as the database compares them."""

    request: HotRequest
    context: RequestContext
    key: tuple[Any, ...]

    @property
    def identifier(self) -> Header:
        """Of the answer."""
        return b"x-request-id", self.context.request_id.encode()


@dataclass(frozen=True, slots=True)
class HotWrite:
    """`perform` returns None, having changed nothing, for what is Django's; it raises as a service verb does.

    `has_query`: it reads the query; otherwise requests that have one are Django's.
    """

    perform: Callable[[WriteCall], Awaitable[Answer | None]]
    methods: frozenset[str] = frozenset({"POST"})
    has_query: bool = False

    def handler(self, label: str) -> Handler:
        async def handle(request: HotRequest, caller: KnownCaller, key: Key) -> Answer | None:
            context = _context(request, caller) if self.has_query or not request.query else None
            if context is None:
                return None
            name = context.caller.id
            if not IN_PROGRESS.take(name):
                raise too_many(running=IN_PROGRESS.taken, waiting=0, own=IN_PROGRESS.held_by(name))
            try:
                answer = await self._performed(WriteCall(request, context, key))
            finally:
                IN_PROGRESS.give_back(name)
            if answer is not None:
                note_call(context, label, answer[0])
            return answer

        return handle

    async def _performed(self, call: WriteCall) -> Answer | None:
        try:
            return await self.perform(call)
        except Exception as error:  # noqa: BLE001 as in `http.request_life`: every error becomes an answer
            if isinstance(error, ContractViolated):  # a verifier must not be asked twice
                note_denial(call.context, asked=f"{call.request.method} {call.request.path.decode()}")
                return failed(call.request, error, call.context.request_id)
            return None if _is_for_django(error, call.context) else failed(call.request, error, call.context.request_id)


def decoded(call: WriteCall, shape: type[T], *, may_be_large: bool = False) -> T | None:
    """The body as `ApiRequest.decode` reads it; None for what Django refuses."""
    try:
        return decode(call.request.body, shape, may_be_large=may_be_large)
    except LakewardenError:
        return None


async def answered(call: WriteCall, done: Stored, *, suffix: bytes, mark: str = "") -> Answer:
    """The answer to a change that led to `done`."""
    size = 2 * done.document.length
    render = partial(stored, call.request, done, suffix=suffix, mark=mark, identifier=call.identifier)
    if size > _LARGE and not accepts_gzip(accepted(call.request)):
        # without room the event loop has to do it: the change was made, and its answer must not be an error
        with suppress(Unavailable):
            return await off_loop(render, size=size, caller=call.context.caller.id)
    return render()


def _context(request: HotRequest, caller: KnownCaller) -> RequestContext | None:
    """None for a request that is not ordinary."""
    headers = request.headers
    if b"content-encoding" in headers or len(request.body) > _LARGEST:
        return None
    context = context_of(caller.token, request.header, clean_request_id(request.header("x-request-id") or ""))
    key = request.header("idempotency-key")
    if key is None:
        return context
    try:
        # as `HttpRequest.get_full_path` writes it, so that the key is known again whoever sees the next request
        path = escape_uri_path(request.path.decode())
        path += f"?{iri_to_uri(request.query.decode())}" if request.query else ""
        return with_key(context, key, method=request.method, path=path, body=request.body)
    except (BadRequest, UnicodeDecodeError):
        return None


def _is_for_django(error: Exception, context: RequestContext) -> bool:
    """Whether the request is to be done again: to be refused in a way that is remembered, audited or replayed."""
    if isinstance(error, CommitStateUnknown | Unavailable) or not isinstance(error, LakewardenError):
        return False  # it may have changed something, or would fail once more
    # with a key: the refusal is to be kept, or another request with it was quicker
    is_replayed = isinstance(error, RepeatedRequest) or context.idempotency is not None
    return is_replayed or isinstance(error, Forbidden) or context.trail.refused is not None
