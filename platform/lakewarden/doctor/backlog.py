"""Checks whether a worker is alive and how many jobs are waiting; for database.py."""

from collections.abc import Iterator
from datetime import datetime
from typing import LiteralString

import psycopg

from lakewarden.doctor.findings import Finding, ok, warn

ALIVE_S = 60  # a worker sends a heartbeat every ten seconds


def examine(connection: psycopg.Connection) -> Iterator[Finding]:
    yield _worker(connection)
    yield from _failed_jobs(connection)


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


def _count(connection: psycopg.Connection, query: LiteralString) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def _clock(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")
