"""Checks the tables that grow with use: rows, size, age, and whether their retention works; for database.py."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import psycopg

from lakewarden.config import Config
from lakewarden.doctor.findings import Finding, ok, warn

_COUNTED: int = 100_000  # rows; larger numbers are estimated
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_STEP = 1024


@dataclass(frozen=True, slots=True)
class Growing:
    """A table with retention. `oldest` selects the time of its oldest row; `slack` is how late its removal may be."""

    name: str
    table: LiteralString
    oldest: LiteralString
    kept: timedelta
    setting: str
    slack: timedelta = timedelta(days=2)


def examine(connection: psycopg.Connection, settings: Config) -> Iterator[Finding]:
    for each in _growing(settings):
        yield _finding(connection, each)
    yield from _lost(connection)
    yield from _beyond_budget(connection)


def _growing(settings: Config) -> tuple[Growing, ...]:
    catalog = settings.catalog
    return (
        Growing(
            "audit",
            "audit_entry",
            "select min(at) from audit_entry",
            timedelta(days=settings.audit.retention_days),
            "audit.retention_days",
        ),
        Growing(
            "outbox",
            "outbox_event",
            "select created_at from outbox_event order by sequence limit 1",
            timedelta(hours=1),
            "not a setting: a worker moves them to the event log",
            slack=timedelta(0),
        ),
        Growing(
            "event log",
            "event_log",
            "select at from event_log order by position limit 1",
            timedelta(days=settings.events.retention_days),
            "events.retention_days",
        ),
        Growing(
            "metrics reports",
            "metrics_report",
            "select received_at from metrics_report order by id limit 1",
            timedelta(days=catalog.metrics_retention_days),
            "catalog.metrics_retention_days",
        ),
        Growing(
            "endpoint statistics",
            "endpoint_calls",
            "select min(hour) from endpoint_calls",
            timedelta(days=settings.usage.retention_days),
            "usage.retention_days",
        ),
        Growing(
            "warehouse statistics",
            "warehouse_statistics",
            "select min(timestamp) from warehouse_statistics",
            timedelta(days=catalog.statistics_retention_days),
            "catalog.statistics_retention_days",
        ),
        Growing(
            "idempotency keys",
            "idempotency_record",
            "select min(created_at) from idempotency_record",
            timedelta(minutes=35),
            "not a setting",
            slack=timedelta(hours=1),
        ),
        Growing(
            "budgets",
            "spending",
            "select min(period) from spending",
            timedelta(days=settings.usage.retention_days),
            "usage.retention_days",
        ),
        Growing(
            "requests with change data",
            "ingest_request",
            "select min(received_at) from ingest_request",
            timedelta(seconds=settings.ingest.recognised_s),
            "ingest.recognised_s",
        ),
    )


def _finding(connection: psycopg.Connection, growing: Growing) -> Finding:
    row = connection.execute(growing.oldest).fetchone()
    oldest: datetime | None = row[0] if row else None
    rows, size = _extent(connection, growing.table)
    kept = f"kept for {_span(growing.kept)} ({growing.setting})"
    if oldest is None:
        return ok(growing.name, f"no rows, {kept}")
    sentence = f"{rows} rows, {size}, the oldest of {oldest.astimezone(UTC):%Y-%m-%d %H:%M} UTC, {kept}"
    if oldest > datetime.now(UTC) - growing.kept - growing.slack:
        return ok(growing.name, sentence)
    return warn(
        growing.name,
        f"{sentence}: older rows should be gone",
        fix="see that a worker runs (`lakewarden work`) that takes the queue `housekeeping`, and what its log says; "
        "events stay until every sink that is served has had them",
    )


def _extent(connection: psycopg.Connection, table: LiteralString) -> tuple[str, str]:
    counted = connection.execute(_COUNT.format(table=table), [_COUNTED + 1]).fetchone()
    estimated, size = connection.execute(_EXTENT, [table]).fetchone() or (0, 0)
    exact = counted[0] if counted else 0
    rows = str(exact) if exact <= _COUNTED else f"about {max(int(estimated), exact)}"
    return rows, _bytes(size)


def _lost(connection: psycopg.Connection) -> Iterator[Finding]:
    row = connection.execute(_LOST).fetchone()
    if row and row[0]:
        yield warn(
            "audit losses",
            f"{row[0]} decisions and refusals of the last day have no entry",
            fix="`GET /management/v1/server/audit?outcome=lost` shows whose they were; raise audit.groups, "
            "audit.refusals_of_one_caller or audit.decisions_of_one_caller to keep them",
        )


def _beyond_budget(connection: psycopg.Connection) -> Iterator[Finding]:
    for budget, refused, spender in connection.execute(_BEYOND).fetchall():
        yield warn(
            f"budget {budget}",
            f"{refused} requests of the last day exceeded it, most of them by {spender!r}",
            fix="find out what this caller does; catalog.metrics_bytes_of_one_caller, "
            "catalog.metrics_bytes_of_warehouse "
            "and idempotency.refusals_per_hour are the limits",
        )


def _span(span: timedelta) -> str:
    if not span.days:
        return f"{span.seconds // 60} minutes"
    return "a day" if span == timedelta(days=1) else f"{span.days} days"


def _bytes(size: float) -> str:
    unit = 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:.0f} {_UNITS[unit]}"


_COUNT: LiteralString = "select count(*) from (select 1 from {table} limit %s) as counted"
_EXTENT: LiteralString = """
    select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    from pg_partition_tree(%s::regclass) as t join pg_class c on c.oid = t.relid
    where t.isleaf
"""
_LOST: LiteralString = "select sum(count) from audit_entry where at > now() - interval '1 day' and outcome = 'lost'"
_BEYOND: LiteralString = """
    select budget, sum(refused)::bigint, (array_agg(spender order by refused desc))[1]
    from spending where period > now() - interval '1 day' and refused > 0 group by budget order by budget
"""
