"""Every change of a task locks the task before its job, so that changes never deadlock."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction

from lakewarden.tasks import attempts, orphans, scheduling, waiting_purges
from tenants.models import Warehouse
from tests.integration.tasks.purges import ask, sql

WAITING = "select count(*) from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
DEEDS: dict[str, Callable[[UUID, str], object]] = {
    "withdraw the purge of a place": lambda _, place: waiting_purges.withdraw(place, reason="taken"),
    "withdraw": lambda task, _: scheduling.withdraw(task, reason="restored"),
    "hurry": lambda task, _: scheduling.hurry([task]),
    "begin": lambda task, _: attempts._begin(task),
    "run again": lambda task, _: scheduling.defer_again(task),
}


@pytest.fixture
def other(database_url: str, database: None) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of somebody else, as that of a request that stops or cancels tasks."""
    with psycopg.connect(database_url) as connected:
        yield connected
        connected.rollback()


@pytest.mark.parametrize("deed", DEEDS)
def test_a_task_is_locked_before_its_job(
    warehouse: Warehouse, tmp_path: Path, other: psycopg.Connection[Any], deed: str
) -> None:
    place = tmp_path / "lake" / "sales" / "orders"
    task = ask(warehouse, place, not_before=datetime.now(UTC) + timedelta(hours=1))

    def do() -> None:
        try:
            with transaction.atomic():
                DEEDS[deed](task, f"file://{place}")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        other.execute("select 1 from task where id = %s for update", [task])
        done = pool.submit(do)
        try:
            _wait_for_waiting(other)
            other.execute("set local lock_timeout = '500ms'")
            other.execute("select 1 from procrastinate_jobs where id in (select job_id from task) for update")
        finally:
            other.rollback()
        done.result(60)


def test_an_orphan_is_looked_at_again_when_it_is_locked(
    warehouse: Warehouse, tmp_path: Path, other: psycopg.Connection[Any]
) -> None:
    """Somebody runs it again in that moment: it gets one job, not two."""
    task = ask(warehouse, tmp_path / "lake" / "sales" / "orders")
    sql("update procrastinate_jobs set status = 'aborted'")

    def settle() -> None:
        try:
            orphans.settle_orphans()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        other.execute("select 1 from task where id = %s for update", [task])
        done = pool.submit(settle)
        _wait_for_waiting(other)
        other.execute(scheduling._DEFER_AGAIN, {"id": task, "at": None, "after_s": 0})
        other.commit()
        done.result(60)
    assert sql("select count(*) from procrastinate_jobs where status = 'todo'") == [(1,)]


def _wait_for_waiting(other: psycopg.Connection[Any]) -> None:
    deadline = time.monotonic() + 60
    while other.execute(WAITING).fetchone() == (0,):
        assert time.monotonic() < deadline, "nobody waits for what is held"
        time.sleep(0.01)
