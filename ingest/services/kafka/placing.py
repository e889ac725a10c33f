"""Appends groups to the log, their contents to Kafka before, if that is configured.

What the log would not take is not written to Kafka either: a look at the log sorts out what was decided on old rights,
what is there already, what has a gap before it, and what finds no room. The statement that appends decides again.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from ingest.references import Reference, pack
from ingest.services import log
from ingest.services.append_statements import BOUNDS, EVERYBODY, IF_UNCHANGED, REMEMBERED
from ingest.services.log import STALE, Batch, Decided, Elsewhere, Outcome, Request, Verdict
from ingest.services.statements import Unstorable, run
from lakewarden import config
from lakewarden.hot.sessions import Lookup

if TYPE_CHECKING:
    from ingest.services.kafka.records import Records

Sent = TypeVar("Sent", Batch, Request)
_LAST: Final = 2**63 - 1


class _Room:
    """What a look has found: `refused` are outcomes without a write, `wanted` what is to be written, by index."""

    def __init__(self, *, capacity: int, buffered: int) -> None:
        self._free = capacity - buffered
        self.buffered = buffered
        self.refused: dict[int, Outcome] = {}
        self.wanted: list[int] = []

    def take(self, number: int, size: int, *, expected: int | None = None, is_allowed: bool = True) -> bool:
        """Whether it is to be written."""
        self._free -= size
        if self._free >= 0 and is_allowed:
            self.wanted.append(number)
            return True
        verdict = Verdict.FULL if self._free < 0 else Verdict.MANY
        self.refused[number] = Outcome(verdict, None, expected, self.buffered)
        return False


async def append(
    warehouse_id: UUID, batches: Sequence[Batch], *, capacity: int, decided: Decided
) -> Sequence[Outcome | Exception]:
    """As `log.append`; Unstorable in place of the outcome of a batch that Kafka does not take."""
    into_log = partial(log.append, warehouse_id, capacity=capacity, decided=decided)
    records = _records()
    if records is None:
        return await into_log(batches)
    given: list[Sequence[object]] = [[each.principal for each in batches], [each.source_id for each in batches]]
    rows = await run(_LOOK, [*log.asked(warehouse_id, decided, capacity), *given])
    if not rows:
        return [STALE] * len(batches)
    found = _Room(capacity=capacity, buffered=rows[0][0])
    following: dict[tuple[str, str], int | None] = {}
    expected: dict[tuple[str, str], int] = {}
    for number, (each, (_, is_open, last)) in enumerate(zip(batches, rows, strict=True)):
        source = each.principal, each.source_id
        if not is_open:
            found.refused[number] = STALE
            continue
        following.setdefault(source, None if last is None else last + 1)
        next_one = following[source]
        if next_one is None:
            next_one = each.sequence_number
        awaited = min(expected.setdefault(source, next_one), _LAST)
        if each.sequence_number > next_one:
            found.refused[number] = Outcome(Verdict.GAP, None, awaited, found.buffered)
        elif each.sequence_number == next_one:
            following[source] = next_one + 1
            if found.take(number, each.size, expected=awaited):
                expected[source] = next_one + 1
    return await _append(records, warehouse_id, batches, found, into_log)


async def append_requests(
    warehouse_id: UUID, requests: Sequence[Request], *, capacity: int, decided: Decided
) -> Sequence[Outcome | Exception]:
    """As `log.append_requests`, likewise."""
    into_log = partial(log.append_requests, warehouse_id, capacity=capacity, decided=decided)
    records = _records()
    if records is None:
        return await into_log(requests)
    given: list[Sequence[object]] = [[each.principal for each in requests], [each.key for each in requests]]
    rows = await run(_LOOK_FOR_REQUESTS, [*log.asked(warehouse_id, decided, capacity), *log.bounds(), *given])
    if not rows:
        return [STALE] * len(requests)
    found = _Room(capacity=capacity, buffered=rows[0][0])
    seen: set[tuple[str, str]] = set()
    new = Counter[str]()
    for number, (each, (_, is_known, free, free_of_caller)) in enumerate(zip(requests, rows, strict=True)):
        if is_known or (each.principal, each.key) in seen:
            continue
        seen.add((each.principal, each.key))
        new[each.principal] += 1
        is_allowed = each.is_acknowledged or (new.total() <= free and new[each.principal] <= free_of_caller)
        found.take(number, each.size, is_allowed=is_allowed)
    return await _append(records, warehouse_id, requests, found, into_log)


async def _append(
    records: "Records",
    warehouse_id: UUID,
    sent: Sequence[Sent],
    found: _Room,
    into_log: Callable[..., Awaitable[list[Outcome]]],
) -> list[Outcome | Exception]:
    """Those that are not refused, in their order; the contents of those that are wanted are written before."""
    outcomes: dict[int, Outcome | Exception] = dict(found.refused)
    places: dict[int, Reference] = {}
    topic_id = ""
    written: Sequence[Reference | Unstorable] = []
    if found.wanted:
        topic_id, written = await records.add(warehouse_id, [sent[number] for number in found.wanted])
    for number, place in zip(found.wanted, written, strict=True):
        if isinstance(place, Unstorable):
            outcomes[number] = place
        else:
            places[number] = place
    chosen = [number for number in range(len(sent)) if number not in outcomes]
    if chosen:
        contents = [pack(places[number]) if number in places else None for number in chosen]
        lowest: dict[int, int] = {}
        for each in places.values():
            lowest[each.partition] = min(lowest.get(each.partition, each.offset), each.offset)
        elsewhere = Elsewhere(contents, records.topic, topic_id, lowest)
        appended = await into_log([sent[number] for number in chosen], elsewhere=elsewhere)
        if places and all(each.verdict is Verdict.UNKNOWN for each in appended):
            await records.look_at_topic()  # it may be another one
        outcomes.update(zip(chosen, appended, strict=True))
    return [outcomes[number] for number in range(len(sent))]


async def ask_whether_it_is_back() -> None:
    """Raises LogUnavailable if Kafka is to take contents and has failed."""
    records = _records()
    if records is not None:
        await records.ask_whether_it_is_back()


async def close() -> None:
    """To be called when the process ends."""
    records = _records()
    if records is not None:
        await asyncio.to_thread(records.close)


def _records() -> "Records | None":
    if config.current().ingest.contents != "kafka":
        return None
    from ingest.services.kafka import records  # noqa: PLC0415 its library is for those who use Kafka

    return records.current()


_LOOK: Final = Lookup(f"""
    with {IF_UNCHANGED},
    given as (
        select * from unnest(%s::text[], %s::text[]) with ordinality as g(principal, source_id, i)
    )
    select h.buffered_bytes, s.source_id is not null, s.last_received_sequence
    from asked a cross join given g join ingest_log_head h on h.warehouse_id = a.warehouse_id
    left join ingest_source s
        on s.warehouse_id = a.warehouse_id and s.principal = g.principal and s.source_id = g.source_id
    order by g.i
""")  # noqa: S608 a text of our own
_LOOK_FOR_REQUESTS: Final = Lookup(f"""
    with {IF_UNCHANGED},
    {BOUNDS},
    given as (
        select * from unnest(%s::text[], %s::text[]) with ordinality as g(principal, key, i)
    ),
    {REMEMBERED}
    select h.buffered_bytes, r.key is not null, b.most - others.requests, b.most_of_caller - own.requests
    from asked a cross join given g cross join bounds b join ingest_log_head h on h.warehouse_id = a.warehouse_id
    join remembered own on own.principal = g.principal
    join remembered others on others.principal = '{EVERYBODY}'
    left join ingest_request r on r.warehouse_id = a.warehouse_id and r.principal = g.principal and r.key = g.key
    order by g.i
""")  # noqa: S608 texts of our own
