"""How far the pipelines of all warehouses are, as they say it in Postgres; `lakewarden pipeline status` shows it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from lakewarden.errors import Unavailable

ALIVE_S = 15
_CONNECT_TIMEOUT_S = 10

_PROGRESS = """
    select w.project_id || '/' || w.name as warehouse, h.last_position, h.flushed_position, h.buffered_batches,
        h.buffered_events, h.buffered_bytes, coalesce(p.instance, '') as instance, coalesce(p.state, '') as state,
        coalesce(p.error, '') as error, coalesce(p.freshness, '{}') as freshness, p.last_flush,
        extract(epoch from p.last_flush_at)::float8 as last_flush_at,
        extract(epoch from clock_timestamp() - p.heartbeat_at)::float8 as silent_s,
        (select extract(epoch from clock_timestamp() - b.received_at)::float8 from ingest_batch b
         where b.warehouse_id = h.warehouse_id and b.position > h.flushed_position order by b.position limit 1)
            as waiting_s,
        (select count(*) from ingest_maintenance_run m
         where m.warehouse_id = h.warehouse_id and m.ended_at > clock_timestamp() - interval '1 day') as maintained,
        (select count(*) from ingest_maintenance_run m where m.warehouse_id = h.warehouse_id and m.state = 'failed'
         and m.ended_at > clock_timestamp() - interval '1 day') as maintenance_failed
    from ingest_log_head h join warehouse w on w.id = h.warehouse_id
    left join ingest_pipeline p on p.warehouse_id = h.warehouse_id order by 1
"""


def progress(dsn: str) -> list[dict[str, Any]]:
    """One for each warehouse that has received change data. Raises `Unavailable`."""
    try:
        with psycopg.connect(dsn, connect_timeout=_CONNECT_TIMEOUT_S, row_factory=dict_row) as connection:
            return [_known(row) for row in connection.execute(_PROGRESS)]
    except psycopg.Error as error:
        raise Unavailable(f"The database cannot be read: {str(error).strip()}") from error


def _known(row: dict[str, Any]) -> dict[str, Any]:
    """`isRunning`: the pipeline was heard of a moment ago."""
    running = bool(row["instance"]) and row["silent_s"] is not None and row["silent_s"] <= ALIVE_S
    return {**row, "state": row["state"] if running else "not running", "is_running": running}


def is_stuck(row: dict[str, Any]) -> bool:
    """Whether somebody has to do something, or nothing that waits is written."""
    return bool(row["error"]) if row["is_running"] else row["buffered_batches"] > 0


def as_json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=1)


def lines(row: dict[str, Any]) -> Iterator[str]:
    """For a person."""
    where = f", on {row['instance']}" if row["is_running"] else ""
    yield f"{row['warehouse']}: {row['state']}{where}"
    if row["error"]:
        yield f"  {row['error']}"
    yield f"  written up to position {row['flushed_position']:,} of {row['last_position']:,}"
    if row["buffered_batches"]:
        size = f"{row['buffered_events']:,} events in {row['buffered_batches']:,} batches"
        oldest = "" if row["waiting_s"] is None else f", the oldest for {row['waiting_s']:,.0f} s"
        yield f"  {size} ({_size(row['buffered_bytes'])}) wait{oldest}"
    said = row["freshness"]
    if "p95" in said:
        window = f"in the last {said['windowSeconds'] / 60:.0f} minutes"
        yield f"  seen in tables after {said['p50'] / 1000:.1f} s (median), {said['p95'] / 1000:.1f} s (95%) {window}"
    if "flushes" in said:
        yield (
            f"  since its start: {said['flushes']:,} flushes, {said['events']:,} events, {said['dataFiles']:,} files, "
            f"{_size(said['bytes'])}, {said['rejectedValues']:,} values rejected"
        )
    if row["last_flush"] and row["last_flush_at"]:
        at = datetime.fromtimestamp(row["last_flush_at"], UTC)
        took = row["last_flush"]["durationMs"] / 1000
        yield f"  last flush: {at:%Y-%m-%d %H:%M:%S} UTC, {row['last_flush']['eventsFlushed']:,} events in {took:.1f} s"
    yield f"  maintenance: {row['maintained']:,} operations in 24 hours, {row['maintenance_failed']:,} failed"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
