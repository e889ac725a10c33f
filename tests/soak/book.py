"""What all clients of a soak share: the warehouses, what they have asked, what was wrong, and how much was checked."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any
from urllib.parse import quote
from uuid import UUID

from tests.integration.replicas.exchange import Call, Exchange
from tests.integration.replicas.pair import Person
from tests.soak.ledger import Finding, GrowingSet, Outcome, Register, Requests, Verdict, Write
from tests.soak.timeline import QUIET, Timeline
from tests.soak.wire import Reply, ask

CONNECTIONS = 32
_TRIES = 4
_PAUSE_S = 0.3
_PASSING = frozenset({0, 429, 500, 503})
"""Answers to be expected while something is broken, and only then."""


@dataclass(frozen=True)
class Warehouse:
    """`is_soft`: what is dropped can be restored for a minute, and then expires."""

    id: str
    is_soft: bool

    def path(self, *segments: str, query: str = "") -> str:
        return "/".join([f"/catalog/v1/{self.id}", *(quote(each, safe="") for each in segments)]) + query

    @property
    def managed(self) -> str:
        return f"/management/v1/warehouse/{self.id}"


@dataclass
class Book:
    ports: list[int]
    people: list[Person]
    warehouses: list[Warehouse]
    timeline: Timeline
    seed: int
    exchange: Exchange = field(default_factory=lambda: Exchange(most=CONNECTIONS))
    findings: list[tuple[str, Finding]] = field(default_factory=list)
    operations: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    """Of shared tables, acknowledged."""
    unanswered: Counter[str] = field(default_factory=Counter)
    unknown: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list))
    requests: Requests = field(default_factory=Requests)
    changes_of: dict[str, int] = field(default_factory=dict)
    """How many changes a request asks for, where it is not one."""
    gone: dict[str, str] = field(default_factory=dict)
    """Locations whose files must go, each with the name of what was dropped."""
    kept: dict[str, str] = field(default_factory=dict)
    """Metadata files that must be there at the end, each with the name of its table or view."""
    left: list[tuple[Warehouse, str, str, tuple[str, str], Register]] = field(default_factory=list)
    """Dropped objects that were left to their expiry: warehouse, kind, namespace, names, what was done to them."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: Any = field(default_factory=lambda: count(1), repr=False)

    @property
    def admin(self) -> Person:
        return self.people[0]

    def next_number(self) -> int:
        return int(next(self._numbers))

    @property
    def checked(self) -> int:
        return self.operations.total()

    def note(self, reply: Reply, findings: Iterable[Finding | None] = ()) -> None:
        """Count an operation, and keep what was wrong with it."""
        kind = self.timeline.kind(reply.start, reply.end)
        self.operations[kind] += 1
        self.findings += [(kind, each) for each in findings if each is not None]
        if reply.status in _PASSING:
            self.unanswered[kind] += 1

    async def read(self, port: int, path: str, *, person: Person | None = None, method: str = "GET") -> Reply:
        """`note` is the caller's, who can judge the answer; what no fault explains is wrong here already."""
        reply = await ask(self.exchange, Call(port, method, path, (person or self.admin).token))
        self._judge(reply, f"{method} {path}", also=frozenset({200, 204, 404}))
        return reply

    async def change(
        self,
        objects: Sequence[Register | GrowingSet],
        value: Hashable,
        call: Call,
        *,
        rng: random.Random,
        keyed: bool = False,
        may_refuse: frozenset[int] = frozenset(),
        changes: int = 1,
    ) -> Reply:
        """Send a write to all of the objects, and write down how it ended; `changes` are to be recorded of it.

        `keyed`: with an Idempotency-Key, and again with the same when the outcome is unknown.
        """
        request_id = f"soak-{self.seed}-{self.next_number()}"
        if changes != 1:
            self.changes_of[request_id] = changes
        call.headers["x-request-id"] = request_id
        if keyed:
            call.headers["idempotency-key"] = str(UUID(int=rng.getrandbits(128), version=4))
        reply = first = None
        writes = [each.send(value, monotonic(), request_id) for each in objects]
        for _ in range(_TRIES if keyed else 1):
            if reply is not None:
                await asyncio.sleep(_PAUSE_S)
                call = Call(rng.choice(self.ports), call.method, call.path, call.token, call.json, call.headers)
            reply = await ask(self.exchange, call)
            first = first or reply
            if reply.outcome is Outcome.ACKNOWLEDGED or first.outcome is Outcome.REFUSED:
                break
        assert reply is not None
        assert first is not None
        outcome = reply.outcome if reply.outcome is Outcome.ACKNOWLEDGED else first.outcome
        reply = Reply(reply.answer, outcome, first.start, reply.end)
        for write in writes:
            write.end(outcome, reply.end)
        self.requests.outcomes[request_id] = outcome
        if outcome is Outcome.UNKNOWN:
            self.unknown[self.timeline.kind(reply.start, reply.end)].append(writes[0])
        self._judge(reply, f"{call.method} {call.path} ({request_id})", also=may_refuse | {200, 204})
        self.note(reply)
        return reply

    def _judge(self, reply: Reply, what: str, *, also: frozenset[int]) -> None:
        kind = self.timeline.kind(reply.start, reply.end)
        if reply.status in also or (kind != QUIET and reply.status in _PASSING):
            return
        told = (
            "no answer"
            if reply.answer is None
            else f"{reply.status} {reply.answer.body[:300].decode(errors='replace')}"
        )
        broken = "nothing was broken" if kind == QUIET else "no fault explains it"
        took = f"{reply.end - reply.start:.1f} s"
        self.findings.append((kind, Finding(Verdict.WRONG, f"{what}: {told} after {took}: {broken}", reply.end)))
