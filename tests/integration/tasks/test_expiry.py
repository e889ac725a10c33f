"""`lakewarden work` ends what was dropped: rows, and then files; a worker that is killed leaves nothing half done."""

import os
import time
from pathlib import Path

import pytest
from django.db import connection, transaction

from catalog.models import Deletion, Namespace, Tabular
from catalog.services.deletion import expire
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.tasks.workers import wait_for, worker
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


@pytest.fixture
def many(lake: Lake) -> int:
    """More tables than one batch removes, in the dropped namespace; returns how many there are in all."""
    with connection.cursor() as cursor:
        cursor.execute(_COPIES, [expire.BATCH])
    return TABLES + expire.BATCH


_COPIES = """
    insert into tabular
    select copy.* from (select * from tabular order by id limit 1) t, generate_series(1, %s) n,
        jsonb_populate_record(null::tabular, to_jsonb(t) || jsonb_build_object(
            'id', gen_random_uuid(), 'uuid', gen_random_uuid(), 'name', 'copy' || n, 'name_key', 'copy' || n,
            'location', t.location || 'copy' || n
        )) copy
"""


def test_a_tree_whose_worker_was_killed_between_two_batches_cannot_be_restored(
    lake: Lake, many: int, admin: AsgiClient, tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    sales = Namespace.everything.get()
    last = Tabular.everything.order_by("-id").values_list("id", flat=True)[0]
    with worker(log) as child:
        with transaction.atomic():
            Tabular.everything.select_for_update().get(id=last)
            wait_for(lambda: Tabular.everything.count() < many, what="the first batch", log=log)
            child.kill()
            child.wait(10)
        left = Tabular.everything.count()
    assert left == many - expire.BATCH
    body = {"targets": [{"type": "namespace", "id": str(sales.id)}]}
    undropped = f"/management/v1/warehouse/{lake.warehouse_id}/deleted-tabulars/undrop"
    assert admin.post(undropped, body).error() == (409, "ConflictException")
    assert Tabular.objects.count() == 0
    give_back()
    with worker(log):
        wait_for(lambda: not Deletion.objects.exists(), what="the expiry", log=log)
    assert not Tabular.everything.exists()
    assert not Namespace.everything.exists()


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
        wait_for(lambda: not Deletion.objects.exists(), what="the expiry", log=log)
        wait_for(lambda: not any(files for _, _, files in os.walk(place)), what="the purges", log=log)
    assert not Tabular.everything.exists()
    assert not Namespace.everything.exists()
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
