"""Checks whether a worker and the pipeline are alive, and what waits for them; for database.py."""

from collections.abc import Iterator
from datetime import datetime
from typing import LiteralString

import psycopg

from lakewarden.doctor.findings import Finding, ok, warn

ALIVE_S = 60  # a worker sends a heartbeat every ten seconds


def examine(connection: psycopg.Connection) -> Iterator[Finding]:
    yield _worker(connection)
    yield from _failed_jobs(connection)
    yield from _pipelines(connection)


def _worker(connection: psycopg.Connection) -> Finding:
    row = connection.execute(
        "select count(*) filter (where last_heartbeat > now() - make_interval(secs => %s)), max(last_heartbeat)"
        " from procrastinate_workers",
        [ALIVE_S],
    ).fetchone()
    alive, latest = row or (0, None)
    waiting = _count(connection, "select count(*) from procrastinate_jobs where status in ('todo', 'doing')")
    jobs = f"{waiting} jobs wait or run"
    if alive:
        return ok("worker", f"{alive} alive, {jobs}")
    since = f"no sign of life since {_clock(latest)}" if latest else "none was ever seen"
    stopped = connection.execute("select host, stopped_at from worker_stop").fetchone()
    if stopped and (latest is None or latest < stopped[1]):
        since = f"the last, on {stopped[0]}, stopped cleanly at {_clock(stopped[1])}"
    return warn("worker", f"{since}, {jobs}", fix="start one: `lakewarden work`; purges of dropped tables wait for it")


def _failed_jobs(connection: psycopg.Connection) -> Iterator[Finding]:
    failed = _count(connection, "select count(*) from procrastinate_jobs where status = 'failed'")
    if failed:
        yield warn(
            "jobs", f"{failed} have failed permanently", fix="look into the worker's log for their names and causes"
        )


def _pipelines(connection: psycopg.Connection) -> Iterator[Finding]:
    """One for each warehouse that has received change data."""
    rows = connection.execute(
        "select w.name, h.buffered_events, coalesce(p.heartbeat_at > now() - make_interval(secs => %s), false),"
        " coalesce(p.error, '') from ingest_log_head h join warehouse w on w.id = h.warehouse_id"
        " left join ingest_pipeline p on p.warehouse_id = h.warehouse_id order by w.name",
        [ALIVE_S],
    ).fetchall()
    for name, waiting, alive, error in rows:
        events = f"{waiting} events wait"
        if error and alive:
            yield warn(f"pipeline of {name}", f"{error} ({events})", fix="correct that; it goes on by itself")
        elif alive or not waiting:
            yield ok(f"pipeline of {name}", f"{'alive' if alive else 'not running'}, {events}")
        else:
            yield warn(
                f"pipeline of {name}",
                f"is not running, {events}",
                fix="start one: `lakewarden pipeline`; nothing is lost, but tables do not show these changes",
            )


def _count(connection: psycopg.Connection, query: LiteralString) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def _clock(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")
