"""`lakewarden work` ends what was dropped: rows, and then files; a worker that is killed leaves nothing half done."""

import time
from pathlib import Path

import pytest
from django.db import connection

from catalog.models import Deletion, Namespace, Tabular
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.tasks.test_worker import wait_for, worker
from tests.servers.asgi_client import AsgiClient

TABLES = 40


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    """A namespace that was dropped with its tables and has expired; the worker's queue knows that its time has come."""
    found = Lake(admin, str(warehouse.id))
    profile = {"delete-profile": {"type": "soft", "expiration-seconds": 60}}
    admin.post(f"/management/v1/warehouse/{warehouse.id}/delete-profile", profile)
    found.create_namespace("sales")
    for number in range(TABLES):
        found.create_table(f"t{number}")
    assert admin.delete(found.namespace("sales", recursive="true")).status == 204
    with connection.cursor() as cursor:
        cursor.execute("update deletion set expires_at = now()")
        cursor.execute("update procrastinate_jobs set scheduled_at = now() where task_name = 'expire_deletion'")
    return found


def give_back() -> None:
    """What the queue does a minute later: the dead worker's job is free for another one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "update procrastinate_jobs set status = 'todo', worker_id = null, scheduled_at = now() "
            "where status = 'doing' or task_name = 'expire_deletion'"
        )


def test_an_expired_tree_goes_with_its_files_whenever_workers_are_killed(
    lake: Lake, warehouse: Warehouse, tmp_path: Path
) -> None:
    place = Path(warehouse.location.removeprefix("file://"))
    log = tmp_path / "worker.log"
    for pause in (0.0, 0.05, 0.2):
        with worker(log) as child:
            wait_for(lambda: _is_begun() or not Deletion.objects.exists(), what="a beginning", log=log)
            time.sleep(pause)
            child.kill()
        give_back()
    with worker(log):
        wait_for(lambda: not Namespace.everything.exists(), what="the expiry", log=log)
        wait_for(lambda: not list(place.glob("**/*.json*")), what="the purges", log=log)
    assert not Tabular.objects.exists()
    assert not Deletion.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("select count(*), count(distinct entity_id) from task where queue_name = 'tabular_purge'")
        assert cursor.fetchone() == (TABLES, TABLES)
        cursor.execute("select count(*), count(distinct object_id) from audit_entry where action = 'expireTable'")
        assert cursor.fetchone() == (TABLES, TABLES)


def _is_begun() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "select 1 from task_attempt a join task t on t.id = a.task_id where t.queue_name = 'soft_deletion'"
        )
        return cursor.fetchone() is not None
