"""Purges of a bucket: exact although their workers are killed -9, and complete where a bucket keeps versions.

`LAKEWARDEN_TEST_S3_PURGE_OBJECTS` sets how many objects the killed one has.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from django.db import transaction
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from lakewarden.storage.removal import Tally
from lakewarden.tasks import purge
from lakewarden.tasks.scope import Entity, Scope
from lakewarden.tasks.stalled import retry_stalled_jobs
from tenants.models import Warehouse
from tests.contracts.storage.many_objects import fill
from tests.contracts.storage.s3_warehouse import described, moved_to
from tests.integration.tasks.purges import ledger, outcome, run, sql
from tests.integration.tasks.workers import worker
from tests.servers.minio import MinioServer, minio
from tests.servers.versitygw import VersityServer, versitygw

__all__ = ["minio", "versitygw"]

OBJECTS = int(os.environ.get("LAKEWARDEN_TEST_S3_PURGE_OBJECTS", "50000"))
KILLS = 3
DECOYS = [f"lake/sales/{name}" for name in ("order/a", "orders.old/a", "orders2/a", "orders_/metadata/v1.json")]


def ask(warehouse: Warehouse) -> UUID:
    with transaction.atomic():
        return purge.request(
            warehouse.storage_profile,
            f"{warehouse.location}/sales/orders",
            scope=Scope(warehouse.project_id, warehouse.id),
            owner="orders",
            entity=Entity("table", "orders", ("sales", "orders")),
        )


def wait_for(condition: Callable[[], bool], *, log: Path, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.05)


def work_for_a_while(task: UUID, log: Path) -> None:
    """A worker removes some more, and is killed -9."""
    before = ledger(task).files
    with worker(log) as child:
        wait_for(lambda: ledger(task).files > before or outcome(task)[0] is not None, log=log)
        child.kill()


@pytest.mark.timeout(900)
def test_a_purge_of_a_bucket_is_exact_although_its_workers_are_killed(
    minio: MinioServer, warehouse: Warehouse, tmp_path: Path
) -> None:
    bucket, log = minio.new_bucket(), tmp_path / "worker.log"
    lake = moved_to(minio, warehouse, bucket, minio.new_owner(bucket))
    fill(minio, bucket, [*DECOYS, *(f"lake/sales/orders/data/p={n % 7}/a b+{n}.parquet" for n in range(OBJECTS))])
    task, kills, started = ask(lake), 0, time.monotonic()
    while kills < KILLS and outcome(task)[0] is None:
        work_for_a_while(task, log)
        kills += 1
        # the time passes after which a dead worker counts as such
        sql("update procrastinate_workers set last_heartbeat = now() - interval '1 minute'")
        with contextlib.suppress(AlreadyEnqueued):
            app.configure_task(retry_stalled_jobs.name).defer(timestamp=0)
    with worker(log):
        wait_for(lambda: outcome(task)[0] is not None, log=log, seconds=600)
    assert outcome(task)[0] == "SUCCESS", outcome(task)
    assert sql("select attempt from task where id = %s", task)[0][0] > 1
    assert ledger(task) == Tally(OBJECTS, 4 * OBJECTS, 0)
    assert minio.keys_in(bucket) == sorted(DECOYS)
    print(f"\n{OBJECTS} objects, {kills} kills: {time.monotonic() - started:.0f} s")  # noqa: T201 the figures


@pytest.mark.parametrize("takes_versions", [True, False])
def test_earlier_versions_go_where_the_profile_says_so(
    minio: MinioServer, warehouse: Warehouse, *, takes_versions: bool
) -> None:
    bucket, client = minio.new_bucket(is_versioned=True), minio.client()
    lake = moved_to(minio, warehouse, bucket, minio.new_owner(bucket), **{"delete-old-versions": takes_versions})
    fill(minio, bucket, [*DECOYS, "lake/sales/orders/a", "lake/sales/orders/a", "lake/sales/orders/b"])
    client.delete_object(Bucket=bucket, Key="lake/sales/orders/b")
    task = ask(lake)
    assert run(task) == (4 if takes_versions else 1)
    found = client.list_object_versions(Bucket=bucket, Prefix="lake/sales/orders/")
    left = [*found.get("Versions", []), *found.get("DeleteMarkers", [])]
    # without it, the bucket keeps what it had, and one more marker
    assert len(left) == (0 if takes_versions else 5)
    assert minio.keys_in(bucket) == sorted(DECOYS)


def test_unfinished_uploads_are_aborted_with_the_versions(versitygw: VersityServer) -> None:
    bucket, client = versitygw.new_bucket(), versitygw.client()
    for key in ("lake/t/a b+", "lake/t2/a"):
        client.create_multipart_upload(Bucket=bucket, Key=key)
    client.put_object(Bucket=bucket, Key="lake/t/f", Body=b"rows")
    profile, credential = described(versitygw, bucket, versitygw.root, **{"delete-old-versions": True})
    store, within = profile.open(credential), profile.location
    found = list(store.survey(f"{within}/t", within=within))
    assert [each.path for each in found] == ["t/f", "t/a b+"]
    removed = store.remove(found, within=within, at_once=2)
    assert (len(removed.gone), removed.error) == (2, None)
    assert list(store.survey(f"{within}/t", within=within)) == []
    assert [each["Key"] for each in client.list_multipart_uploads(Bucket=bucket)["Uploads"]] == ["lake/t2/a"]
