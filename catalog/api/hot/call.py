"""What a hot read is, and what it is called with; the decision that it needs, and the traces that it leaves."""

from asyncio import Future
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from lakewarden.audit import decision_buffer
from lakewarden.audit.decision_buffer import DECISIONS, Group
from lakewarden.audit.entries import MAX_USER_AGENT
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authz.actions import Action, ObjectType
from lakewarden.authz.authorize import deciding
from lakewarden.authz.decision_cache import HELD_PRIVILEGES, Epoch
from lakewarden.authz.model import is_allowed
from lakewarden.context import Allowed, CallerKey
from lakewarden.hot.coalescer import Coalescer, Key, NotAnswered, found
from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.hot.sessions import Row
from lakewarden.usage.call_counter import COUNTS

T = TypeVar("T")


class KnownCaller(NamedTuple):
    """Somebody whose token was verified before; `key` is what decides what they may do."""

    token: VerifiedToken
    key: CallerKey


Handler = Callable[[HotRequest, KnownCaller, Key], Awaitable[Answer | None]]
"""Answers a request of a known caller that has met its route; None for what is Django's.

The key holds the route's variables as the database compares them.
"""


@dataclass(frozen=True, slots=True)
class HotRead:
    """A hot read: its handler, and the action that the caller must be allowed to do.

    `answer` returns None if Django must answer the request. `noted` is the action that the audit records, where Django
    asks for less first: a list of everything is more than a list of what may be seen. `look_up` finds the
    row, where that is all that the database is asked for (see `looked_up`).
    """

    answer: Callable[["HotCall"], Awaitable[Answer | None]]
    action: Action
    object_type: ObjectType
    noted: Action | None = None
    methods: frozenset[str] = frozenset({"GET", "HEAD"})
    look_up: Coalescer | None = None
    words: tuple[str, str] = field(init=False)
    """The names of action and type for the audit: looking an enumeration's value up costs more than all of it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", ((self.noted or self.action).value, self.object_type.value))


class HotCall(NamedTuple):
    """A request of a known caller that has met its route.

    `key` holds the route's variables as the database compares them; `label` is the route's template. `looking` is the
    look-up of the row, if it has begun; `repeat` is what the request may come again as.
    """

    request: HotRequest
    caller: CallerKey
    key: tuple[Any, ...]
    read: HotRead
    label: str
    looking: Future[Row | None] | None = None
    repeat: "Repeatable | None" = None


class Found(NamedTuple):
    """An object, and the epoch that was read with it; `known_as` is its id for callers, where that is another one."""

    object_id: str
    epoch: Epoch
    known_as: UUID | None = None

    @property
    def public_id(self) -> str:
        return str(self.known_as or self.object_id)


class Repeatable(Protocol):
    """Where a handler keeps its answer to a request that may come again."""

    def keep(self, seen: "Seen", answer: Answer) -> None:
        """`answer` is that to what was seen. It depends on nothing else but the request, not even on the time."""


class Seen(NamedTuple):
    """What a handler has looked up: the row of a key, of an object in a warehouse.

    `is_current` is asked in addition whether that is still all.
    """

    key: Key
    row: Row
    found: Found
    warehouse_id: UUID
    is_current: Callable[[], bool] | None = None


def may(call: HotCall, found: Found) -> bool:
    """Whether it is known that the caller may; an unknown decision counts as denied."""
    held = HELD_PRIVILEGES.find(call.caller, found.object_id, found.epoch)
    return held is not None and is_allowed(call.read.action, held)


def counted(call: HotCall, found: Found, warehouse_id: UUID, answer: Answer) -> Answer:
    """Count the call, and its decision, as `http.call_recording` does those of Django."""
    COUNTS.add(call.label, answer[0], project_id=found.epoch.project_id, warehouse_id=warehouse_id)
    if decision_buffer.are_recorded() and not DECISIONS.again(key := decision(call, found)):
        note_allowed(call, found, key, dict(answer[1])[b"x-request-id"].decode())
    return answer


def decision(call: HotCall, found: Found) -> decision_buffer.Key:
    """What makes the decision another one than others."""
    (actor, _, role), (action, object_type) = call.caller, call.read.words
    return actor, role, action, object_type, found.public_id


def note_allowed(call: HotCall, found: Found, key: decision_buffer.Key, identifier: str) -> None:
    """The decision `key`, for the first time; `identifier` is the request's."""
    action, object_type = call.read.words
    held = HELD_PRIVILEGES.find(call.caller, found.object_id, found.epoch) or frozenset()
    privileges = deciding(call.read.noted or call.read.action, held)
    allowed = Allowed(action, object_type, found.public_id, found.epoch.project_id, privileges)
    user_agent = (call.request.header("user-agent") or "")[:MAX_USER_AGENT]
    DECISIONS.add(key, Group(allowed, identifier, user_agent))


async def looked_up(call: HotCall, key: Key) -> Row | None:
    """The row of a key by the route's look-up, which may have begun already; raises as `asked`."""
    assert call.read.look_up is not None  # noqa: S101 that of whoever calls this
    return await asked(found(call.looking or call.read.look_up.ask(key)))


def answered(call: HotCall, seen: Seen, answer: Answer) -> Answer:
    """As `counted`; the answer is kept if the request may come again."""
    if call.repeat is not None:
        call.repeat.keep(seen, answer)
    return counted(call, seen.found, seen.warehouse_id, answer)


async def find(coalescer: Coalescer, key: Key) -> Row | None:
    """The key's row; raises as `asked`."""
    return await asked(coalescer.find(key))


async def asked(look_up: Awaitable[T | None]) -> T | None:
    """What it finds; None when it is not answered, and Django should try."""
    try:
        return await look_up
    except NotAnswered:
        return None
