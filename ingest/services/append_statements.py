"""The statements that append to the durable log, and the parts of them that contents in Kafka are looked up with."""

from typing import Final

from catalog.models.tabular import MOVED
from lakewarden.hot.sessions import Lookup
from tenants.models.warehouse import ACTIVE_IN_EPOCH

RECENT: Final = 64
"""Batches of a source whose checksums are kept, so that a repeated batch differs from other content with its number."""
EVERYBODY: Final = ""
"""Instead of a caller, in the counts of requests: all of the warehouse."""

IF_UNCHANGED: Final = f"""
    places as (
        select * from unnest(%s::uuid[], %s::text[], %s::text[], %s::uuid[])
            as p(namespace_id, path_key, name_key, tabular_id)
    ),
    given_at as (select (%s::uuid[])[1] as warehouse_id, (%s::bigint[])[1] as epoch, (%s::bigint[])[1] as capacity),
    elsewhere as (
        select * from unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[])
            as e(topic, topic_id, partition, lowest)
    ),
    asked as materialized (
        select g.warehouse_id, g.capacity from given_at g
        {ACTIVE_IN_EPOCH.format(warehouse="g.warehouse_id", epoch="g.epoch")}
        where not exists ({MOVED.format(places="places")})
          and not exists (select 1 from elsewhere e left join ingest_kafka_floor f using (topic, partition)
                          where f.topic_id is distinct from e.topic_id or f.lowest > e.lowest)
    )
"""  # noqa: S608 texts of our own
"""Without a row of `asked`, the statements below change nothing and have no rows."""

_GROWN: Final = """
    moved as (
        update ingest_log_head h
        set last_position = h.last_position + n.batches, buffered_batches = h.buffered_batches + n.batches,
            buffered_events = h.buffered_events + n.events, buffered_bytes = h.buffered_bytes + n.bytes,
            total_batches = h.total_batches + n.batches, total_events = h.total_events + n.events,
            total_bytes = h.total_bytes + n.bytes, checks = h.checks + c.checks,
            duplicates = h.duplicates + c.duplicates,
            newest_at = case when n.batches > 0 then clock_timestamp() else h.newest_at end
        from (select count(*) as batches, coalesce(sum(events), 0) as events, coalesce(sum(size), 0) as bytes
              from {new}) n,
             ({counts}) c
        where h.warehouse_id = (select warehouse_id from asked)
        returning h.last_position - n.batches as before, h.flushed_position as flushed, h.buffered_bytes, h.newest_at
    ),
    added as (
        insert into ingest_batch (warehouse_id, position, source_id, principal, sequence_number, received_at, events,
                                  bytes, encoding, tables, content)
        select (select warehouse_id from asked), m.before + n.nth_new, g.source_id, g.principal, {number}, m.newest_at,
               g.events, g.size, g.encoding, g.tables::jsonb, g.content
        from {new} n join given g on g.i = n.i cross join moved m
    )"""
"""Adds the rows that `new` names; `counts` says how many were compared, and how many of them repeat others."""

_REPEATED: Final = """
    select count(*) as checks, count(*) filter (where ahead <= 0 or nth > 1) as duplicates
    from ranked"""
_REPEATED_REQUESTS: Final = """
    select count(*) as checks,
           count(*) filter (where fits and (is_allowed or checksum is not null))
           - (select count(*) from new) as duplicates
    from fitting"""

_FAR: Final = 1_000_000
_LAST: Final = 2**63 - 1
"""Numbers are compared as `numeric`: two of 64 bits can be further apart than 64 bits count."""

APPEND: Final = Lookup(f"""
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
    {_GROWN.format(new="fitting", number="g.number", counts=_REPEATED)},
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

APPEND_REQUESTS: Final = Lookup(f"""
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
    {_GROWN.format(new="new", number="null", counts=_REPEATED_REQUESTS)}
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
