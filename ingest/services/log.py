"""The durable log: a group of batches is appended by one statement, in one round trip.

The statement locks the rows of the sources in their order, then the warehouse's head, which it holds until its commit:
positions are dense and in the order of commits, on all replicas, so whoever has read up to a position has missed
nothing below it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from ingest.log_statements import MARK_FLUSHED
from ingest.references import IN_KAFKA
from ingest.services.append_statements import APPEND, APPEND_REQUESTS
from ingest.services.statements import Interrupted, run, run_once
from ingest.services.targets import Place
from lakewarden import config
from lakewarden.hot.connections import connection
from lakewarden.hot.sessions import Lookup, Row
from tenants.models.warehouse import PLACES


class Verdict(StrEnum):
    """What became of a batch. Only `APPENDED` ones were stored by this call.

    `UNKNOWN`: its source is not open, or what its sender may do was decided before something changed. `KEPT`: it is in
    the fallback file. `MANY`: as many requests are remembered as may be.
    """

    APPENDED = "appended"
    KEPT = "kept"
    DUPLICATE = "duplicate"
    PERSISTED = "persisted"
    DIFFERENT = "different"
    GAP = "gap"
    FULL = "full"
    MANY = "many"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a source. `content` is a JSON array of `events` events, `tables` what `IngestBatch.tables` says.

    `size` is that of the content before it was compressed (`encoding` 1), `checksum` its CRC-32.
    """

    principal: str
    source_id: str
    sequence_number: int
    events: int
    content: bytes
    tables: str
    checksum: int
    size: int
    encoding: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """The events of one request, which `key` names for its caller; the rest as in `Batch`.

    One that `is_acknowledged` is remembered also where there are as many requests as allowed.
    """

    principal: str
    source_id: str
    key: str
    events: int
    content: bytes
    tables: str
    digest: bytes
    size: int
    encoding: int = 0
    is_acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """What a group may be appended on: decisions of one `epoch` of the project about `places`."""

    epoch: int
    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The contents of a group that are in Kafka: packed references to them, None for what is only to be compared.

    `lowest` offset of each partition of the topic: nothing is appended when records from there on may be deleted
    already, or the topic was made anew.
    """

    contents: Sequence[bytes | None]
    topic: str
    topic_id: str
    lowest: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`expected` is the source's next number; `buffered_bytes` is what waits for the pipeline, this group included."""

    verdict: Verdict
    position: int | None
    expected: int | None
    buffered_bytes: int


STALE: Final = Outcome(Verdict.UNKNOWN, None, None, 0)


@dataclass(frozen=True, slots=True)
class Opened:
    """`last` is the last number that was received of a source; of a new one, the one that its client claims.

    None: its first batch decides.
    """

    is_open: bool
    last: int | None


@dataclass(frozen=True, slots=True)
class Head:
    """The log of a warehouse, as `IngestLogHead` describes it; `oldest_at` is the time of what was not flushed yet."""

    last_position: int
    flushed_position: int
    buffered_batches: int
    buffered_events: int
    buffered_bytes: int
    checks: int
    duplicates: int
    oldest_at: datetime | None
    newest_at: datetime | None
    flushed_at: datetime | None


async def open_source(
    warehouse_id: UUID, *, principal: str, source_id: str, shard_name: str, last_acked: int | None
) -> Opened:
    """Begin or go on with a source; no new one where there are as many as allowed. Raises LogUnavailable."""
    limits = config.current().ingest
    given: list[list[object]] = [
        [warehouse_id], [principal], [source_id], [shard_name], [last_acked], [limits.max_sources],
        [limits.max_sources_per_caller],
    ]  # fmt: skip
    rows = await run(_OPEN_SOURCE, given)
    return Opened(is_open=True, last=rows[0][0]) if rows else Opened(is_open=False, last=None)


async def begin(warehouse_id: UUID) -> None:
    """Make the log of a warehouse that has none. Raises LogUnavailable."""
    await run(_BEGIN, [[warehouse_id]])


async def append(
    warehouse_id: UUID,
    batches: Sequence[Batch],
    *,
    capacity: int,
    decided: Decided,
    elsewhere: Elsewhere | None = None,
) -> list[Outcome]:
    """An outcome for each of the batches, which must be sorted by number within a source.

    Nothing is appended when a right in the project, a place or the warehouse has changed since the decisions. What
    does not fit into `capacity` bytes that wait for the pipeline is refused. Raises LogUnavailable if that may have
    failed: then nothing is known, and a repetition is recognised.
    """
    numbers, marks = [each.sequence_number for each in batches], [each.checksum for each in batches]
    columns = _columns(batches, numbers, marks, elsewhere)
    return await _appended(APPEND, [*asked(warehouse_id, decided, capacity, elsewhere), *columns], len(batches))


async def append_requests(
    warehouse_id: UUID,
    requests: Sequence[Request],
    *,
    capacity: int,
    decided: Decided,
    elsewhere: Elsewhere | None = None,
) -> list[Outcome]:
    """Like `append`; a request whose key its caller has used is a DUPLICATE, or DIFFERENT with another digest.

    A new one beyond the number that is remembered of its caller or of the warehouse is refused: MANY. Those that other
    servers append at the same moment may not be counted.
    """
    keys, marks = [each.key for each in requests], [each.digest for each in requests]
    columns = [*_columns(requests, keys, marks, elsewhere), [int(each.is_acknowledged) for each in requests]]
    asking = [*asked(warehouse_id, decided, capacity, elsewhere), *bounds()]
    return await _appended(APPEND_REQUESTS, [*asking, *columns], len(requests))


async def head(warehouse_id: UUID) -> Head | None:
    """None: nothing was ever sent to the warehouse. Raises LogUnavailable."""
    rows = await run(_HEAD, [[warehouse_id]])
    return Head(*rows[0]) if rows else None


async def mark_flushed(warehouse_id: UUID, *, upto: int) -> bool:
    """Note that everything up to a position is in snapshots; False: it was noted before. Raises LogUnavailable."""
    async with connection() as usable:
        cursor = await usable.execute(MARK_FLUSHED.encode(), {"warehouse_id": warehouse_id, "upto": upto})
        return await cursor.fetchone() is not None


def asked(
    warehouse_id: UUID, decided: Decided, capacity: int, elsewhere: Elsewhere | None = None
) -> list[Sequence[object]]:
    """The columns of `IF_UNCHANGED`."""
    places = list(decided.places)
    lowest = {} if elsewhere is None else elsewhere.lowest
    topic, topic_id = ("", "") if elsewhere is None else (elsewhere.topic, elsewhere.topic_id)
    return [
        [each.namespace_id for each in places],
        [each.path_key for each in places],
        [each.name_key for each in places],
        [each.table_id for each in places],
        [warehouse_id],
        [decided.epoch],
        [capacity],
        [topic] * len(lowest),
        [topic_id] * len(lowest),
        list(lowest),
        list(lowest.values()),
    ]


def bounds() -> list[Sequence[object]]:
    """The columns of `BOUNDS`."""
    limits = config.current().ingest
    return [[limits.max_requests], [limits.max_requests_per_caller], [limits.recognised_s], [limits.request_span_s]]


def _columns(
    sent: Sequence[Batch] | Sequence[Request],
    names: Sequence[object],
    marks: Sequence[object],
    elsewhere: Elsewhere | None,
) -> list[Sequence[object]]:
    """As the statements have them: `names` are numbers or keys, `marks` differ when the content does."""
    moved = 0 if elsewhere is None else IN_KAFKA
    return [
        [each.principal for each in sent],
        [each.source_id for each in sent],
        names,
        [each.events for each in sent],
        [each.size for each in sent],
        [each.encoding + moved for each in sent],
        marks,
        [each.tables for each in sent],
        [each.content for each in sent] if elsewhere is None else elsewhere.contents,
    ]


async def _appended(statement: Lookup, columns: Sequence[Sequence[object]], count: int) -> list[Outcome]:
    try:
        rows, repeated = await run_once(statement, columns), False
    except Interrupted:
        # it may have ended after the commit: then these are recognised as duplicates
        rows, repeated = await run_once(statement, columns), True
    found = {row[0]: row[1:] for row in rows}
    # without rows, something has changed since the decisions, or the warehouse has gone
    return [_outcome(found.get(number, _NOTHING), repeated=repeated) for number in range(1, count + 1)]


def _outcome(row: Row, *, repeated: bool) -> Outcome:
    word, position, expected, buffered = row
    verdict = Verdict(word)
    if repeated and verdict in {Verdict.DUPLICATE, Verdict.PERSISTED}:
        verdict = Verdict.APPENDED
    return Outcome(verdict, position, expected, buffered)


_NOTHING: Final[Row] = (Verdict.UNKNOWN, None, None, 0)


_OPEN_SOURCE: Final = Lookup("""
    with given as (
        select * from unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[])
            as g(warehouse_id, principal, source_id, shard_name, last_acked, most, most_of_caller)
    ),
    head as (
        insert into ingest_log_head (warehouse_id) select warehouse_id from given on conflict do nothing
    )
    insert into ingest_source as s (warehouse_id, principal, source_id, shard_name, last_received_sequence,
                                    last_acked_sequence, recent_positions, recent_checksums, connected_at,
                                    last_activity_at)
    select g.warehouse_id, g.principal, g.source_id, g.shard_name, g.last_acked, g.last_acked, '{}', '{}', now(), now()
    from given g
    where ((select count(*) from (select 1 from ingest_source o where o.warehouse_id = g.warehouse_id
                                  limit g.most) others) < g.most
           and (select count(*) from (select 1 from ingest_source o where o.warehouse_id = g.warehouse_id
                                      and o.principal = g.principal limit g.most_of_caller) own) < g.most_of_caller)
       or exists (select 1 from ingest_source o where o.warehouse_id = g.warehouse_id
                  and o.principal = g.principal and o.source_id = g.source_id)
    on conflict (warehouse_id, principal, source_id) do update
    set shard_name = excluded.shard_name, connected_at = now(), last_activity_at = now(),
        last_received_sequence = coalesce(s.last_received_sequence, excluded.last_received_sequence),
        last_acked_sequence = greatest(s.last_acked_sequence,
                                       least(excluded.last_acked_sequence, s.last_received_sequence))
    returning s.last_received_sequence
""")

_BEGIN: Final = Lookup(f"""
    insert into ingest_log_head (warehouse_id)
    select k.id from unnest(%s::uuid[]) as k(id) join ({PLACES}) w on w.id = k.id on conflict do nothing
""")  # noqa: S608 text of our own

_HEAD: Final = Lookup("""
    select h.last_position, h.flushed_position, h.buffered_batches, h.buffered_events, h.buffered_bytes, h.checks,
           h.duplicates,
           (select b.received_at from ingest_batch b
            where b.warehouse_id = h.warehouse_id and b.position > h.flushed_position order by b.position limit 1),
           h.newest_at, h.flushed_at
    from unnest(%s::uuid[]) as k(id) join ingest_log_head h on h.warehouse_id = k.id
""")
