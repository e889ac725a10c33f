"""What `/status` and `/analytics/status` show of the sources of a warehouse, and of what was received."""

import json
from typing import Any, Final
from uuid import UUID

from ingest.services.statements import run
from lakewarden import config
from lakewarden.hot.sessions import Lookup


async def listed(warehouse_id: UUID, *, of: str | None, limit: int) -> list[dict[str, Any]]:
    """Those that are connected, by their last activity; `of`: only those of this caller. Raises LogUnavailable."""
    rows = await run(_LISTED, [[warehouse_id], [of], [limit]])
    return [json.loads(shown) for (shown,) in rows]


async def tracked(warehouse_id: UUID) -> int:
    """Batches and requests that would be recognised by their content; not more than some. Raises LogUnavailable."""
    ((found,),) = await run(_TRACKED, [[warehouse_id], [warehouse_id]])
    return int(found)


async def analytics(warehouse_id: UUID) -> dict[str, Any]:
    """The members of `/analytics/status`: counters of the log since its beginning, and what the pipeline says that it
    has written since its start. Raises LogUnavailable.
    """
    rows = await run(_COUNTED, [[warehouse_id]])
    buffered, batches, events, size, fallbacks, files, errors = rows[0] if rows else (0,) * 7
    return {
        "durabilityTier": "P2",
        "primaryStorage": config.current().ingest.contents,
        "fallbackStorage": "none" if config.current().ingest.fallback_folder is None else "local",
        "eventsBuffered": buffered,
        "batchesReceived": batches,
        "eventsReceived": events,
        "bytesReceived": size,
        "r2Writes": files,
        "vfsFallbacks": fallbacks,
        "errors": errors,
    }


_MS: Final = "(extract(epoch from {moment}) * 1000)::bigint"
_LISTED: Final = Lookup(f"""
    select json_build_object(
        'id', s.source_id, 'sourceShardName', s.shard_name,
        'lastReceivedSequence', coalesce(s.last_received_sequence, 0),
        'lastAckedSequence', coalesce(s.last_received_sequence, 0),
        'connectedAt', {_MS.format(moment="s.connected_at")},
        'lastActivityAt', {_MS.format(moment="s.last_activity_at")},
        'batchesReceived', s.batches, 'eventsReceived', s.events
    )::text
    from unnest(%s::uuid[], %s::text[], %s::bigint[]) as g(warehouse_id, principal, most)
    join lateral (
        select * from ingest_source o
        where o.warehouse_id = g.warehouse_id and (g.principal is null or o.principal = g.principal)
        order by o.last_activity_at desc limit g.most
    ) s on true
    where exists (select 1 from ingest_connection c where c.warehouse_id = s.warehouse_id
                  and c.principal = s.principal and c.source_id = s.source_id and c.until > now())
""")  # noqa: S608 text of our own
_MOST_COUNTED: Final = 100_000
_TRACKED: Final = Lookup(f"""
    select (select coalesce(sum(cardinality(recent_checksums)), 0) from ingest_source
            where warehouse_id = (%s::uuid[])[1])::bigint
         + (select count(*) from (
                select 1 from ingest_request where warehouse_id = (%s::uuid[])[1] limit {_MOST_COUNTED}) r)
""")  # noqa: S608 a number of our own
_COUNTED: Final = Lookup("""
    select h.buffered_events, h.total_batches, h.total_events, h.total_bytes, h.fallback_batches,
           coalesce((p.freshness ->> 'dataFiles')::bigint, 0), coalesce((p.freshness ->> 'rejectedValues')::bigint, 0)
    from unnest(%s::uuid[]) as k(id) join ingest_log_head h on h.warehouse_id = k.id
    left join ingest_pipeline p on p.warehouse_id = k.id
""")
