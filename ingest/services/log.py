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

from catalog.models.tabular import MOVED
from ingest.log_statements import MARK_FLUSHED
from ingest.references import IN_KAFKA
from ingest.services.statements import Interrupted, run, run_once
from ingest.services.targets import Place
from lakewarden import config
from lakewarden.hot.connections import connection
from lakewarden.hot.sessions import Lookup, Row
from tenants.models.warehouse import ACTIVE_IN_EPOCH, PLACES

RECENT: Final = 64
"""Batches of a source whose checksums are kept, so that a repeated batch differs from other content with its number."""
EVERYBODY: Final = ""
"""Instead of a caller, in the counts of requests: all of the warehouse."""


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

    `lowest` offset of each topic and partition: nothing is appended when records from there on may be deleted already.
    """

    contents: Sequence[bytes | None]
    lowest: Mapping[tuple[str, int], int]


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
    return await _appended(_APPEND, [*asked(warehouse_id, decided, capacity, elsewhere), *columns], len(batches))


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
    return await _appended(_APPEND_REQUESTS, [*asking, *columns], len(requests))


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
    return [
        [each.namespace_id for each in places],
        [each.path_key for each in places],
        [each.name_key for each in places],
        [each.table_id for each in places],
        [warehouse_id],
        [decided.epoch],
        [capacity],
        [topic for topic, _ in lowest],
        [partition for _, partition in lowest],
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

IF_UNCHANGED: Final = f"""
    places as (
        select * from unnest(%s::uuid[], %s::text[], %s::text[], %s::uuid[])
            as p(namespace_id, path_key, name_key, tabular_id)
    ),
    given_at as (select (%s::uuid[])[1] as warehouse_id, (%s::bigint[])[1] as epoch, (%s::bigint[])[1] as capacity),
    elsewhere as (select * from unnest(%s::text[], %s::bigint[], %s::bigint[]) as e(topic, partition, lowest)),
    asked as materialized (
        select g.warehouse_id, g.capacity from given_at g
        {ACTIVE_IN_EPOCH.format(warehouse="g.warehouse_id", epoch="g.epoch")}
        where not exists ({MOVED.format(places="places")})
          and not exists (select 1 from elsewhere e join ingest_kafka_floor f using (topic, partition)
                          where f.lowest > e.lowest)
    )
"""  # noqa: S608 texts of our own
"""Without a row of `asked`, the statements below change nothing and have no rows."""

_FAR: Final = 1_000_000
_LAST: Final = 2**63 - 1
"""Numbers are compared as `numeric`: two of 64 bits can be further apart than 64 bits count."""

_APPEND: Final = Lookup(f"""
    with {IF_UNCHANGED},
    given as (
        select * from unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
                             %s::bigint[], %s::text[], %s::bytea[])
            with ordinality as g(principal, source_id, number, events, size, encoding, checksum, tables, content, i)
    ),
    opened as (
        select s.principal, s.source_id, s.last_received_sequence as last, s.recent_positions as positions,
               s.recent_checksums as checksums
        from ingest_source s
        where s.warehouse_id = (select warehouse_id from asked)
          and (s.principal, s.source_id) in (select g.principal, g.source_id from given g)
        order by s.principal, s.source_id for update
    ),
    compared as (
        select g.i, g.principal, g.source_id, g.number, g.events, g.size, g.checksum,
               g.content is not null as has_content, o.source_id is not null as is_open, o.positions, o.checksums,
               coalesce(o.last, min(g.number) over of_source - 1::numeric) as last,
               row_number() over (partition by g.principal, g.source_id, g.number order by g.i) as nth
        from given g left join opened o using (principal, source_id)
        window of_source as (partition by g.principal, g.source_id)
    ),
    ranked as (
        select c.*, least(greatest(c.number - c.last, -{_FAR}), {_FAR})::int as ahead,
               row_number() over (partition by principal, source_id, number > last and nth = 1 and has_content
                                  order by i) as rank
        from compared c
    ),
    new as (
        select *, sum(size) over (order by i) as needed from ranked
        where is_open and nth = 1 and ahead = rank and has_content
    ),
    head as (
        select last_position, flushed_position, buffered_bytes from ingest_log_head
        where warehouse_id = (select warehouse_id from asked) and (select count(*) from new) >= 0 for update
    ),
    fitting as (
        select n.*, row_number() over (order by n.i) as nth_new
        from new n, head, asked where head.buffered_bytes + n.needed <= asked.capacity
    ),
    moved as (
        update ingest_log_head h
        set last_position = h.last_position + f.batches, buffered_batches = h.buffered_batches + f.batches,
            buffered_events = h.buffered_events + f.events, buffered_bytes = h.buffered_bytes + f.bytes,
            total_batches = h.total_batches + f.batches, total_events = h.total_events + f.events,
            total_bytes = h.total_bytes + f.bytes, checks = h.checks + c.checks,
            duplicates = h.duplicates + c.duplicates,
            newest_at = case when f.batches > 0 then clock_timestamp() else h.newest_at end
        from (select count(*) as batches, coalesce(sum(events), 0) as events, coalesce(sum(size), 0) as bytes
              from fitting) f,
             (select count(*) as checks, count(*) filter (where ahead <= 0 or nth > 1) as duplicates
              from ranked) c
        where h.warehouse_id = (select warehouse_id from asked)
        returning h.last_position - f.batches as before, h.flushed_position as flushed, h.buffered_bytes, h.newest_at
    ),
    added as (
        insert into ingest_batch (warehouse_id, position, source_id, principal, sequence_number, received_at, events,
                                  bytes, encoding, tables, content)
        select (select warehouse_id from asked), m.before + f.nth_new, f.source_id, f.principal, f.number, m.newest_at,
               f.events, f.size, g.encoding, g.tables::jsonb, g.content
        from fitting f join given g on g.i = f.i, moved m
    ),
    advanced as (
        update ingest_source s
        set last_received_sequence = a.last, batches = s.batches + a.batches, events = s.events + a.events,
            recent_positions = (a.positions || s.recent_positions)[:{RECENT}],
            recent_checksums = (a.checksums || s.recent_checksums)[:{RECENT}], last_activity_at = m.newest_at
        from (
            select f.principal, f.source_id, max(f.number) as last, count(*) as batches, sum(f.events) as events,
                   array_agg(m.before + f.nth_new order by f.i desc) as positions,
                   array_agg(f.checksum order by f.i desc) as checksums
            from fitting f, moved m group by f.principal, f.source_id
        ) a, moved m
        where s.warehouse_id = (select warehouse_id from asked)
          and s.principal = a.principal and s.source_id = a.source_id
    ),
    judged as (
        select r.*, n.i is not null as is_new, f.nth_new,
               r.positions[1 - r.ahead] as known_position, r.checksums[1 - r.ahead] as known_checksum,
               r.positions[cardinality(r.positions)] as oldest_position
        from ranked r left join new n on n.i = r.i left join fitting f on f.i = r.i
    )
    select j.i,
           case when not j.is_open then 'unknown'
                when j.nth_new is not null then 'appended'
                when j.is_new then 'full'
                when j.nth > 1 then 'duplicate'
                when j.ahead > 0 and not j.has_content then 'unknown'
                when j.ahead > 0 then 'gap'
                when 1 - j.ahead > cardinality(j.positions) and cardinality(j.positions) < {RECENT} then 'gap'
                when j.known_checksum <> j.checksum then 'different'
                when coalesce(j.known_position, j.oldest_position, m.before) <= m.flushed then 'persisted'
                else 'duplicate' end,
           coalesce(m.before + j.nth_new, j.known_position),
           least(j.last + (select count(*) from fitting f
                           where f.principal = j.principal and f.source_id = j.source_id) + 1, {_LAST})::bigint,
           m.buffered_bytes
    from judged j, moved m
""")  # noqa: S608 a number of our own

BOUNDS: Final = """
    bounds as (
        select most, most_of_caller, now() - make_interval(secs => recognised_s) as since,
               date_bin(make_interval(secs => span_s), now(), 'epoch') as began_at
        from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
            as b(most, most_of_caller, recognised_s, span_s)
    )
"""
REMEMBERED: Final = f"""
    remembered as (
        select p.principal, c.requests
        from (select '{EVERYBODY}' union select principal from given) p(principal) cross join lateral (
            select coalesce(sum(c.requests), 0) as requests from ingest_request_count c, bounds b
            where c.warehouse_id = (select warehouse_id from asked) and c.principal = p.principal
              and c.began_at > b.since
        ) c
    )
"""  # noqa: S608 texts of our own
"""How many requests each principal of `given`, and all of them together, are remembered of."""

_APPEND_REQUESTS: Final = Lookup(f"""
    with {IF_UNCHANGED},
    {BOUNDS},
    given as (
        select g.*, sum(g.size) over (order by g.i) as needed,
               row_number() over (partition by g.principal, g.key order by g.i) as nth,
               max(g.acknowledged) over (partition by g.principal, g.key) > 0 as is_acknowledged
        from unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[],
                    %s::text[], %s::bytea[], %s::bigint[])
            with ordinality as g(principal, source_id, key, events, size, encoding, digest, tables, content,
                                 acknowledged, i)
    ),
    head as (
        select buffered_bytes, capacity from ingest_log_head h join asked a using (warehouse_id) for update of h
    ),
    known as (
        select r.principal, r.key, r.checksum from ingest_request r
        where r.warehouse_id = (select warehouse_id from asked)
          and (r.principal, r.key) in (select g.principal, g.key from given g)
    ),
    {REMEMBERED},
    compared as (
        select g.i, g.principal, g.key, g.digest, g.needed, g.nth, g.is_acknowledged, k.checksum,
               g.content is not null as has_content,
               count(*) filter (where k.checksum is null and g.nth = 1) over (order by g.i) as others,
               count(*) filter (where k.checksum is null and g.nth = 1)
                   over (partition by g.principal order by g.i) as own
        from given g left join known k on k.principal = g.principal and k.key = g.key
    ),
    fitting as (
        select c.*, h.buffered_bytes + c.needed <= h.capacity as fits,
               c.is_acknowledged or (own.requests + c.own <= b.most_of_caller
                                     and others.requests + c.others <= b.most) as is_allowed
        from compared c cross join head h cross join bounds b
        join remembered own on own.principal = c.principal
        join remembered others on others.principal = '{EVERYBODY}'
    ),
    kept as (
        insert into ingest_request (warehouse_id, principal, key, checksum, received_at)
        select (select warehouse_id from asked), principal, key, digest, clock_timestamp()
        from fitting where fits and is_allowed and nth = 1 and has_content
        on conflict do nothing returning principal, key
    ),
    new as (
        select g.*, row_number() over (order by g.i) as nth_new
        from given g join kept k on k.principal = g.principal and k.key = g.key and g.nth = 1
    ),
    counted as (
        insert into ingest_request_count as c (warehouse_id, principal, began_at, requests)
        select (select warehouse_id from asked), n.principal, b.began_at, n.requests
        from (select principal, count(*) as requests from new group by principal
              union all select '{EVERYBODY}', count(*) from new having count(*) > 0 order by principal) n, bounds b
        on conflict (warehouse_id, principal, began_at) do update set requests = c.requests + excluded.requests
    ),
    moved as (
        update ingest_log_head h
        set last_position = h.last_position + n.batches, buffered_batches = h.buffered_batches + n.batches,
            buffered_events = h.buffered_events + n.events, buffered_bytes = h.buffered_bytes + n.bytes,
            total_batches = h.total_batches + n.batches, total_events = h.total_events + n.events,
            total_bytes = h.total_bytes + n.bytes, checks = h.checks + c.checks,
            duplicates = h.duplicates + c.fitting - n.batches,
            newest_at = case when n.batches > 0 then clock_timestamp() else h.newest_at end
        from (select count(*) as batches, coalesce(sum(events), 0) as events, coalesce(sum(size), 0) as bytes
              from new) n,
             (select count(*) as checks,
                    count(*) filter (where fits and (is_allowed or checksum is not null)) as fitting
              from fitting) c
        where h.warehouse_id = (select warehouse_id from asked)
        returning h.last_position - n.batches as before, h.buffered_bytes, h.newest_at
    ),
    added as (
        insert into ingest_batch (warehouse_id, position, source_id, principal, sequence_number, received_at, events,
                                  bytes, encoding, tables, content)
        select (select warehouse_id from asked), m.before + n.nth_new, n.source_id, n.principal, null, m.newest_at,
               n.events, n.size, n.encoding, n.tables::jsonb, n.content
        from new n, moved m
    )
    select f.i,
           case when n.i is not null then 'appended'
                when f.checksum <> f.digest then 'different'
                when f.checksum is not null then 'duplicate'
                when f.nth = 1 and not f.has_content then 'unknown'
                when not f.fits then 'full'
                when not f.is_allowed then 'many'
                else 'duplicate' end,
           m.before + n.nth_new, null::bigint, m.buffered_bytes
    from fitting f cross join moved m left join new n on n.i = f.i
""")  # noqa: S608 texts of our own

_HEAD: Final = Lookup("""
    select h.last_position, h.flushed_position, h.buffered_batches, h.buffered_events, h.buffered_bytes, h.checks,
           h.duplicates,
           (select b.received_at from ingest_batch b
            where b.warehouse_id = h.warehouse_id and b.position > h.flushed_position order by b.position limit 1),
           h.newest_at, h.flushed_at
    from unnest(%s::uuid[]) as k(id) join ingest_log_head h on h.warehouse_id = k.id
""")
