"""Purges as the management API tells of them, and what a worker does to their jobs."""

from typing import Any

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Tabular
from lakewarden.storage.local import LocalStorage
from lakewarden.tasks.attempts import GivenUp
from lakewarden.tasks.purge import purge_location
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer


def dropped(lake: Lake, name: str) -> str:
    """Create and drop a table; returns its id, which is its purge's entity."""
    assert lake.create_table(name).status == 200
    identifier = str(Tabular.objects.get(name=name).uuid)
    assert lake.client.delete(lake.table(name, purgeRequested="true")).status == 204
    return identifier


def task_route(lake: Lake, rest: str) -> str:
    return f"/management/v1/warehouse/{lake.warehouse_id}/task/{rest}"


def listed(lake: Lake, **body: Any) -> list[dict[str, Any]]:
    answer = lake.client.post(task_route(lake, "list"), {key.replace("_", "-"): value for key, value in body.items()})
    assert answer.status == 200, answer.body
    return list(answer.json()["tasks"])


def told(lake: Lake, task_id: str, query: str = "") -> Any:
    answer = lake.client.get(task_route(lake, f"by-id/{task_id}{query}"))
    assert answer.status == 200, answer.body
    return answer.json()


def act(lake: Lake, action: str, *task_ids: str, **more: Any) -> Answer:
    body = {"action": {"action-type": action, **more}, "task-ids": list(task_ids)}
    return lake.client.post(task_route(lake, "control"), body)


def take(task_id: str) -> ProcrastinateJob:
    """What a worker does before it runs a job."""
    job: ProcrastinateJob = ProcrastinateJob.objects.filter(args__task_id=task_id, status="todo").get()
    with connection.cursor() as cursor:
        cursor.execute("update procrastinate_jobs set status = 'doing' where id = %s", [job.id])
    return job


def finish(job: ProcrastinateJob, status: str, *, delete: bool = False) -> None:
    """What a worker does after a run."""
    with connection.cursor() as cursor:
        cursor.execute("select procrastinate_finish_job_v1(%s, %s, %s)", [job.id, status, delete])


def retry(job: ProcrastinateJob) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select procrastinate_retry_job_v2(%s, now(), null, null, null)", [job.id])


def failing(monkeypatch: pytest.MonkeyPatch, reason: str = "the disk is on fire") -> None:
    def fail(_self: LocalStorage, location: str, *, within: str) -> None:
        raise OSError(f"{reason} at {location}")

    monkeypatch.setattr(LocalStorage, "survey", fail)


def run(job: ProcrastinateJob) -> None:
    assert purge_location(**job.args) >= 0
    finish(job, "succeeded", delete=True)


def fail_for_good(lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str = "orders") -> str:
    dropped(lake, name)
    task = listed(lake)[0]["task-id"]
    queue = f"/management/v1/warehouse/{lake.warehouse_id}/task-queue/tabular_purge/config"
    assert lake.client.post(queue, {"queue-config": {"max-attempts": 1}}).status == 204
    with monkeypatch.context() as broken:
        failing(broken)
        job = take(task)
        with pytest.raises(GivenUp):
            purge_location(**job.args)
        finish(job, "failed")
    return str(task)
