"""`lakewarden work` as a process: it purges what was dropped, and takes over what a killed one left."""

import signal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from lakewarden.tasks import cleanup
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.tasks.purges import sql
from tests.integration.tasks.workers import wait_for, worker
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


def tasks(lake: Lake) -> list[dict[str, Any]]:
    answer = lake.client.post(f"/management/v1/warehouse/{lake.warehouse_id}/task/list", {})
    assert answer.status == 200, answer.body
    return list(answer.json()["tasks"])


def test_the_worker_purges_a_dropped_table_and_stops_when_told(lake: Lake, tmp_path: Path) -> None:
    lake.create_table("kept")
    lake.create_table("orders")
    location = Path(lake.load("orders")["metadata"]["location"].removeprefix("file://"))
    (location / "data").mkdir()
    (location / "data" / "a.parquet").write_bytes(b"rows")
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    assert location.exists()
    log = tmp_path / "worker.log"

    with worker(log) as child:
        wait_for(lambda: not location.exists(), what="the purge", log=log)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0

    (task,) = tasks(lake)
    assert (task["status"], task["progress"]) == ("SUCCESS", 1.0)
    assert lake.load("kept")["metadata"]["location"] != str(location)
    assert Path(lake.load("kept")["metadata-location"].removeprefix("file://")).exists()
    assert "Traceback" not in log.read_text()


def test_a_worker_takes_only_tasks_of_its_queues(lake: Lake, tmp_path: Path) -> None:
    lake.create_table("orders")
    location = Path(lake.load("orders")["metadata"]["location"].removeprefix("file://"))
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    log = tmp_path / "worker.log"

    with worker(log, LAKEWARDEN__WORKER__QUEUES="soft_deletion,task_log_cleanup") as child:
        wait_for(lambda: bool(sql("select 1 from procrastinate_workers")), what="the worker", log=log)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    assert location.exists()

    with worker(log, LAKEWARDEN__WORKER__QUEUES="soft_deletion,tabular_purge"):
        wait_for(lambda: not location.exists(), what="the purge", log=log)


def test_a_job_of_a_killed_worker_is_given_back(lake: Lake, tmp_path: Path) -> None:
    lake.create_table("orders")
    location = Path(lake.load("orders")["metadata"]["location"].removeprefix("file://"))
    lake.client.delete(lake.table("orders", purgeRequested="true"))
    # a worker took the job, and was killed a minute ago
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into procrastinate_workers (last_heartbeat) values (now() - interval '1 minute') returning id"
        )
        dead = cursor.fetchone()[0]
        cursor.execute("update procrastinate_jobs set status = 'doing', worker_id = %s", [dead])
    log = tmp_path / "worker.log"

    def is_left() -> bool:
        return ProcrastinateJob.objects.filter(task_name="purge_location").exists()

    with worker(log):
        # the files go first, then the task is settled, and the job goes last
        wait_for(lambda: not is_left(), what="the end of the job", log=log)

    assert not location.exists()
    assert [each["status"] for each in tasks(lake)] == ["SUCCESS"]


def test_a_failed_purge_is_run_again_over_the_api(lake: Lake, admin: AsgiClient, tmp_path: Path) -> None:
    lake.create_table("orders")
    location = Path(lake.load("orders")["metadata"]["location"].removeprefix("file://"))
    lake.client.delete(lake.table("orders", purgeRequested="true"))
    management = f"/management/v1/warehouse/{lake.warehouse_id}"
    settings = {"queue-config": {"max-attempts": 1}}
    assert admin.post(f"{management}/task-queue/tabular_purge/config", settings).status == 204
    # somebody has put a link out of the warehouse in its place
    location.rename(tmp_path / "elsewhere")
    location.symlink_to(tmp_path / "elsewhere")
    log = tmp_path / "worker.log"

    with worker(log):
        wait_for(lambda: tasks(lake)[0]["status"] == "FAILED", what="the failure", log=log)
        told = admin.get(f"{management}/task/by-id/{tasks(lake)[0]['task-id']}").json()
        assert told["message"].startswith("OutOfReach: ")
        assert [each["status"] for each in told["attempts"]] == ["FAILED"]
        location.unlink()
        (tmp_path / "elsewhere").rename(location)
        again = {"action": {"action-type": "run-now"}, "task-ids": [told["task-id"]]}
        assert admin.post(f"{management}/task/control", again).status == 204
        wait_for(lambda: tasks(lake)[0]["status"] == "SUCCESS", what="the second run", log=log)

    assert not location.exists()
    assert tasks(lake)[0]["attempt"] == 2


def test_the_worker_plans_the_cleanup_of_the_log() -> None:
    assert cleanup.task_log_cleanup.name in app.tasks
    assert ("plan_task_log_cleanup", "") in app.periodic_registry.periodic_tasks
