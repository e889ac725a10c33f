"""Background work over the management API: what is listed, told, stopped, cancelled and run again, and by whom."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import JobAborted

from catalog.models import Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.context import RequestContext
from lakewarden.events.models import OutboxEvent
from lakewarden.prepared_statements import execute
from lakewarden.tasks import orphans
from lakewarden.tasks.attempts import GivenUp
from lakewarden.tasks.purge import purge_location
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.management.purges import (
    act,
    dropped,
    fail_for_good,
    failing,
    finish,
    listed,
    retry,
    run,
    take,
    task_route,
    told,
)
from tests.servers.asgi_client import AsgiClient

MISSING = "0197f1c2-0000-7000-8000-000000000000"


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(admin, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


def test_a_purge_is_listed_with_what_it_works_on(lake: Lake, warehouse: Warehouse) -> None:
    table = dropped(lake, "orders")
    (task,) = listed(lake)
    times = {key: task.pop(key) for key in ("task-id", "scheduled-for", "created-at")}
    assert times["scheduled-for"] == times["created-at"]
    assert task == {
        "project-id": warehouse.project_id,
        "warehouse-id": lake.warehouse_id,
        "queue-name": "tabular_purge",
        "entity": {"type": "table", "table-id": table, "warehouse-id": lake.warehouse_id},
        "entity-name": ["sales", "orders"],
        "status": "SCHEDULED",
        "attempt": 0,
        "progress": 0.0,
    }


def test_a_purge_that_has_run_stays_listed(lake: Lake) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    job = take(identifier)
    assert told(lake, identifier)["status"] == "RUNNING"
    run(job)
    task = told(lake, identifier)
    assert (task["status"], task["progress"], task["attempt"]) == ("SUCCESS", 1.0, 1)
    details = task["execution-details"]
    assert details["location"] == job.args["location"]
    # the profile and the key of what was dropped are in the job, and of no use to who reads the task
    assert task["task-data"] == {"location": job.args["location"]}
    assert (details["files-removed"], details["folders-removed"]) == (1, 2)
    assert task["message"] == f"1 files removed ({details['bytes-removed']} bytes), and 2 folders"
    (attempt,) = task["attempts"]
    assert (attempt["attempt"], attempt["status"], attempt["progress"]) == (1, "SUCCESS", 1.0)
    assert attempt["duration"].startswith("PT")
    assert task["picked-up-at"] == attempt["started-at"]
    assert ended(identifier) == {
        "queue-name": "tabular_purge",
        "outcome": "SUCCESS",
        "attempts": 1,
        "entity-type": "table",
        "entity-id": task["entity"]["table-id"],
        "warehouse-id": lake.warehouse_id,
    }


def ended(identifier: str) -> dict[str, Any]:
    """What the one event says that a task has ended."""
    event = OutboxEvent.objects.get(type="endTask", object_id=identifier)
    assert (event.actor, event.request_id) == ("system~lakewarden", identifier)
    return dict(event.data)


def test_attempts_are_kept_with_their_reasons(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    with monkeypatch.context() as broken:
        for number in range(3):
            failing(broken, f"failure {number}")
            job = take(identifier)
            with pytest.raises(OSError, match=f"failure {number}"):
                purge_location(**job.args)
            retry(job)
    run(take(identifier))
    task = told(lake, identifier)
    assert [each["attempt"] for each in task["attempts"]] == [4, 3, 2, 1]
    assert [each["status"] for each in task["attempts"]] == ["SUCCESS", "FAILED", "FAILED", "FAILED"]
    assert task["attempts"][1]["message"].startswith("OSError: failure 2 at file://")
    assert (ended(identifier)["outcome"], ended(identifier)["attempts"]) == ("SUCCESS", 4)
    assert [each["attempt"] for each in told(lake, identifier, "?numAttempts=2")["attempts"]] == [4, 3]
    assert told(lake, identifier, "?numAttempts=0")["attempts"] == []
    for wrong in ("-1", "x", "1001", "9" * 30, "%00"):
        assert lake.client.get(task_route(lake, f"by-id/{identifier}?numAttempts={wrong}")).status == 400


def test_an_attempt_whose_worker_was_lost_is_ended_by_the_next(lake: Lake) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    job = take(identifier)
    with connection.cursor() as cursor:
        cursor.execute("insert into task_attempt (task_id, attempt, scheduled_for) values (%s, 1, now())", [identifier])
        cursor.execute("update task set attempt = 1 where id = %s", [identifier])
    retry(job)
    run(take(identifier))
    lost = told(lake, identifier)["attempts"][1]
    assert (lost["status"], lost["message"]) == ("FAILED", "Its worker was lost")


def test_a_failed_purge_holds_its_place_until_it_is_run_again(
    lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{warehouse.location}/mine"
    lake.create_table("orders", location=place)
    lake.client.delete(lake.table("orders", purgeRequested="true"))
    (identifier,) = [each["task-id"] for each in listed(lake)]
    queue = f"/management/v1/warehouse/{lake.warehouse_id}/task-queue/tabular_purge/config"
    lake.client.post(queue, {"queue-config": {"max-attempts": 1}})
    with monkeypatch.context() as broken:
        failing(broken)
        job = take(identifier)
        with pytest.raises(GivenUp, match="OSError: the disk is on fire"):
            purge_location(**job.args)
        finish(job, "failed")
    assert told(lake, identifier)["status"] == "FAILED"
    assert lake.create_view("v", location=place).status == 503
    assert act(lake, "run-now", identifier).status == 204
    assert told(lake, identifier)["status"] == "SCHEDULED"
    assert lake.create_view("v", location=place).status == 503
    run(take(identifier))
    assert told(lake, identifier)["status"] == "SUCCESS"
    assert not Path(place.removeprefix("file://")).exists()
    assert lake.create_view("v", location=place).status == 200


def test_a_failed_purge_that_is_cancelled_gives_its_place_up_with_its_files(
    lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    identifier = fail_for_good(lake, monkeypatch)
    location = ProcrastinateJob.objects.get(args__task_id=identifier).args["location"]
    assert act(lake, "cancel", identifier).status == 204
    assert told(lake, identifier)["status"] == "CANCELLED"
    assert not ProcrastinateJob.objects.filter(args__task_id=identifier).exists()
    assert Path(location.removeprefix("file://")).exists()
    again = lake.create_table("again", location=location)
    assert (again.status, "not empty" in again.message()) == (400, True)
    assert act(lake, "run-now", identifier).error() == (409, "ConflictException")


def test_a_cancelled_purge_never_runs(lake: Lake) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    for _ in range(2):
        assert act(lake, "cancel", identifier).status == 204
    assert told(lake, identifier)["message"] == "Cancelled on request: files that were not removed by then stay"
    assert not ProcrastinateJob.objects.exists()
    assert AuditEntry.objects.filter(action="controlTask").count() == 1


def test_a_running_purge_is_stopped_and_runs_again(lake: Lake) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    job = take(identifier)
    assert act(lake, "stop", identifier).status == 204
    assert act(lake, "stop", identifier).status == 204
    assert told(lake, identifier)["status"] == "STOPPING"
    with pytest.raises(JobAborted):
        purge_location(**job.args)
    finish(job, "aborted")
    task = told(lake, identifier)
    assert task["status"] == "SCHEDULED"
    assert datetime.fromisoformat(task["scheduled-for"]) > timezone.now() + timedelta(seconds=50)
    assert task["attempts"][0]["message"] == "Stopped on request"
    assert act(lake, "run-now", identifier).status == 204
    run(take(identifier))
    assert told(lake, identifier)["status"] == "SUCCESS"


def test_a_running_purge_is_cancelled(lake: Lake) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    job = take(identifier)
    assert act(lake, "cancel", identifier).status == 204
    assert told(lake, identifier)["status"] == "STOPPING"
    assert act(lake, "run-now", identifier).status == 409
    with pytest.raises(JobAborted):
        purge_location(**job.args)
    finish(job, "aborted")
    assert told(lake, identifier)["status"] == "CANCELLED"
    assert ended(identifier)["outcome"] == "CANCELLED"
    assert not ProcrastinateJob.objects.filter(status="todo").exists()
    assert Path(job.args["location"].removeprefix("file://")).exists()


@pytest.mark.parametrize(("action", "after"), [("stop", "SCHEDULED"), ("cancel", "CANCELLED")])
def test_a_stopped_task_whose_worker_was_lost_does_not_stay_so(lake: Lake, action: str, after: str) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    job = take(identifier)
    act(lake, action, identifier)
    retry(job)  # the queue gives a job up that was asked to abort
    orphans.settle_orphans()
    assert told(lake, identifier)["status"] == after
    assert not ProcrastinateJob.objects.filter(id=job.id).exists()


def test_a_task_runs_at_the_time_that_is_asked_for(lake: Lake) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    at = (timezone.now() + timedelta(days=3)).replace(microsecond=0)
    assert act(lake, "run-at", identifier, **{"scheduled-for": at.isoformat()}).status == 204
    assert datetime.fromisoformat(told(lake, identifier)["scheduled-for"]) == at
    assert ProcrastinateJob.objects.get().scheduled_at == at
    job = take(identifier)
    assert act(lake, "run-at", identifier, **{"scheduled-for": at.isoformat()}).status == 409
    assert act(lake, "run-now", identifier).status == 204
    act(lake, "stop", identifier)
    assert act(lake, "run-at", identifier, **{"scheduled-for": at.isoformat()}).status == 204
    with pytest.raises(JobAborted):
        purge_location(**job.args)
    assert ProcrastinateJob.objects.get(status="todo").scheduled_at == at


def test_control_is_recorded_and_done_to_all_or_none(lake: Lake) -> None:
    for name in ("a", "b"):
        dropped(lake, name)
    first, second = [each["task-id"] for each in listed(lake)]
    run(take(second))
    assert act(lake, "cancel", first, second).error() == (409, "ConflictException")
    assert act(lake, "cancel", first, MISSING).error() == (404, "NoSuchTaskException")
    assert told(lake, first)["status"] == "SCHEDULED"
    assert not AuditEntry.objects.filter(action="controlTask").exists()
    assert act(lake, "cancel", first).status == 204
    entry = AuditEntry.objects.get(action="controlTask")
    assert entry.details == {
        "queue-name": "tabular_purge",
        "action": "cancel",
        "was": "SCHEDULED",
        "warehouse-id": lake.warehouse_id,
    }
    assert OutboxEvent.objects.get(type="controlTask").object_id == first


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "action"),
        ({"action": {"action-type": "cancel"}}, "task-ids"),
        ({"action": {"action-type": "cancel"}, "task-ids": []}, "task-ids"),
        ({"action": {"action-type": "cancel"}, "task-ids": ["x"]}, "task-ids"),
        ({"action": {"action-type": "cancel"}, "task-ids": [MISSING] * 101}, "at most 100"),
        ({"action": {"action-type": "fly"}, "task-ids": [MISSING]}, "action"),
        ({"action": {"action-type": "run-at"}, "task-ids": [MISSING]}, "only allowed with the action-type run-at"),
        (
            {"action": {"action-type": "stop", "scheduled-for": "2030-01-01T00:00:00Z"}, "task-ids": [MISSING]},
            "only allowed with",
        ),
        ({"action": {"action-type": "run-at", "scheduled-for": "soon"}, "task-ids": [MISSING]}, "scheduled-for"),
        (
            {"action": {"action-type": "run-at", "scheduled-for": "9999-01-01T00:00:00Z"}, "task-ids": [MISSING]},
            "365 days",
        ),
    ],
)
def test_a_wrong_control_is_refused(lake: Lake, body: Any, reason: str) -> None:
    answer = lake.client.post(task_route(lake, "control"), body)
    assert (answer.status, reason in answer.message()) == (400, True), answer.body


def test_the_list_is_filtered_and_paged(lake: Lake) -> None:
    tables = [dropped(lake, name) for name in ("a", "b", "c")]
    newest = [each["entity"]["table-id"] for each in listed(lake)]
    assert newest == tables[::-1]
    first = listed(lake, status=["SCHEDULED"], queue_name=["tabular_purge"])
    assert len(first) == 3
    run(take(first[0]["task-id"]))
    assert [each["entity"]["table-id"] for each in listed(lake, status=["SUCCESS"])] == tables[2:]
    assert len(listed(lake, status=["SCHEDULED", "SUCCESS"])) == 3
    assert listed(lake, status=[]) == listed(lake, queue_name=[]) == listed(lake, entities=[]) == []
    assert listed(lake, queue_name=["other"]) == []
    wanted = [{"type": "table", "table-id": tables[1]}, {"type": "view", "view-id": tables[0]}]
    assert [each["entity"]["table-id"] for each in listed(lake, entities=wanted)] == [tables[1]]
    assert listed(lake, entities=[{"type": "warehouse"}]) == []
    middle = first[1]["created-at"]
    assert [each["entity"]["table-id"] for each in listed(lake, created_after=middle)] == tables[2:]
    assert [each["entity"]["table-id"] for each in listed(lake, created_before=middle)] == tables[:1]
    page = lake.client.post(task_route(lake, "list"), {"page-size": 2}).json()
    assert len(page["tasks"]) == 2
    rest = lake.client.post(task_route(lake, "list"), {"page-size": 2, "page-token": page["next-page-token"]}).json()
    assert [each["entity"]["table-id"] for each in page["tasks"] + rest["tasks"]] == tables[::-1]
    assert "next-page-token" not in rest


@pytest.mark.parametrize(
    "body",
    [
        {"status": ["DONE"]},
        {"status": "SUCCESS"},
        {"queue-name": "tabular_purge"},
        {"queue-name": ["q\u0000"]},
        {"queue-name": ["q"] * 101},
        {"entities": [{"type": "table"}]},
        {"entities": [{"type": "table", "view-id": MISSING}]},
        {"entities": [{"type": "warehouse", "table-id": MISSING}]},
        {"entities": [{"type": "table", "table-id": "x"}]},
        {"entities": [{"type": "warehouse"}] * 101},
        {"created-after": "yesterday"},
        {"page-size": 0},
        {"page-size": "many"},
        {"page-token": "x"},
        {"page-token": "MWZvcmVpZ24"},
        {"limit": 3},
    ],
)
def test_a_wrong_list_is_refused(lake: Lake, body: Any) -> None:
    assert lake.client.post(task_route(lake, "list"), body).error() == (400, "BadRequestException")


def test_who_may_see_and_control_tasks(lake: Lake, client: AsgiClient, grant: Any) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    grant("reader", "describe")
    grant("writer", "write")
    grant("editor", "modify")
    for name in ("reader", "writer"):
        mine = Lake(client.as_user(name), lake.warehouse_id)
        assert len(listed(mine)) == 1
        assert told(mine, identifier)["status"] == "SCHEDULED"
        assert act(mine, "cancel", identifier).error() == (403, "ForbiddenException")
    stranger = Lake(client.as_user("stranger"), lake.warehouse_id)
    assert stranger.client.post(task_route(lake, "list"), {}).error() == (404, "NoSuchWarehouseException")
    assert stranger.client.get(task_route(lake, f"by-id/{identifier}")).error() == (404, "NoSuchWarehouseException")
    assert act(stranger, "cancel", identifier).error() == (404, "NoSuchWarehouseException")
    assert act(Lake(client.as_user("editor"), lake.warehouse_id), "cancel", identifier).status == 204


def test_tasks_of_other_warehouses_and_projects_are_missing(
    lake: Lake, admin: AsgiClient, admin_context: RequestContext, tmp_path: Path
) -> None:
    dropped(lake, "orders")
    identifier = listed(lake)[0]["task-id"]
    profile = {"type": "local", "base-path": str(tmp_path / "other")}
    made = admin.post("/management/v1/warehouse", {"warehouse-name": "other", "storage-profile": profile}).json()
    other = Lake(admin, made["id"])
    assert listed(other) == []
    assert admin.get(task_route(other, f"by-id/{identifier}")).error() == (404, "NoSuchTaskException")
    assert admin.get(task_route(lake, "by-id/nothing")).error() == (404, "NoSuchTaskException")
    assert act(other, "cancel", identifier).error() == (404, "NoSuchTaskException")
    # a project's own list is not that of its warehouses
    assert admin.post("/management/v1/project/task/list", {}).json()["tasks"] == []
    assert admin.get(f"/management/v1/project/task/by-id/{identifier}").error() == (404, "NoSuchTaskException")
    project = {"action": {"action-type": "cancel"}, "task-ids": [identifier]}
    assert admin.post("/management/v1/project/task/control", project).error() == (404, "NoSuchTaskException")
    assert told(lake, identifier)["status"] == "SCHEDULED"
    assert admin.post("/management/v1/project", {"project-name": "p", "project-id": "p"}).status == 201
    elsewhere = {"x-project-id": "p"}
    assert admin.post("/management/v1/project/task/list", {}, headers=elsewhere).json()["tasks"] == []


def test_a_drop_that_fails_leaves_no_task(lake: Lake) -> None:
    lake.create_table("orders")
    table = Tabular.objects.get(name="orders")
    path = f"/management/v1/warehouse/{lake.warehouse_id}/table/{table.uuid}/protection"
    lake.client.post(path, {"protected": True})
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 409
    assert listed(lake) == []
    assert not ProcrastinateJob.objects.exists()


def test_a_job_of_an_older_release_runs_without_a_record(
    lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped(lake, "orders")
    arguments = {key: value for key, value in ProcrastinateJob.objects.get().args.items() if key != "task_id"}
    execute("delete from reserved_location", [])  # that release kept none
    with monkeypatch.context() as broken:
        failing(broken)
        with pytest.raises(OSError, match="the disk is on fire"):
            purge_location(**arguments)
    assert purge_location(**arguments) == 1
