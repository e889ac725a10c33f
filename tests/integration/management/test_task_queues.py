"""How queues are set, by whom, and that the workers obey it."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from lakewarden.tasks import cleanup, stalled
from lakewarden.tasks.cleanup import plan_task_log_cleanup, task_log_cleanup
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.management.purges import dropped, fail_for_good, listed, run, take, told
from tests.servers.asgi_client import AsgiClient

PROJECT = "/management/v1/project/task-queue/task_log_cleanup/config"


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(admin, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


def route(warehouse: object, rest: str = "tabular_purge/config") -> str:
    return f"/management/v1/warehouse/{warehouse}/task-queue/{rest}"


def age(task_id: str, days: int) -> None:
    with connection.cursor() as cursor:
        at = timezone.now() - timedelta(days=days)
        cursor.execute("update task set finished_at = %s where id = %s", [at, task_id])


@pytest.mark.parametrize(("level", "config"), [("warehouse", {"max-attempts": 3}), ("project", {"retention-days": 7})])
def test_what_is_set_is_told_and_recorded(admin: AsgiClient, warehouse: Warehouse, level: str, config: Any) -> None:
    path = route(warehouse.id) if level == "warehouse" else PROJECT
    assert admin.get(path).json() == {"queue-config": {}}
    body = {"queue-config": config, "max-seconds-since-last-heartbeat": 120}
    assert admin.post(path, body).status == 204
    told = admin.get(path).json()
    assert told["queue-config"].pop("retention-period", "P7D") == "P7D"
    assert told == body
    assert admin.post(path, {"queue-config": {}}).status == 204
    assert admin.get(path).json() == {"queue-config": {}}
    entry = AuditEntry.objects.filter(action="setTaskQueueConfig").order_by("id")[0]
    assert entry.details["queue-config"] == config
    assert entry.object_type == level
    assert OutboxEvent.objects.filter(type="setTaskQueueConfig").count() == 2


@pytest.mark.parametrize(
    ("config", "days"),
    [
        ({"cleanup-period": "P1D", "retention-period": "P90D"}, 90),
        ({"cleanup-period": "PT1H", "retention-period": "P1DT1S"}, 2),
        ({"cleanup-period": None, "retention-period": "PT1H30M45.5S"}, 1),
        ({"retention-days": 7, "retention-period": "P7D"}, 7),
    ],
)
def test_the_cleanup_takes_the_periods_of_the_compatible_api(admin: AsgiClient, config: Any, days: int) -> None:
    assert admin.post(PROJECT, {"queue-config": config}).status == 204
    assert admin.get(PROJECT).json() == {"queue-config": {"retention-days": days, "retention-period": f"P{days}D"}}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"cleanup-period": "P2D"}, "finished tasks are removed once a day"),
        ({"retention-period": "90 days"}, "'90 days': an ISO 8601 duration such as P90D is expected"),
        ({"retention-period": 90}, "an ISO 8601 duration"),
        ({"retention-period": "P99999999999999D"}, "an ISO 8601 duration"),
        ({"retention-period": "PT0S"}, "from 1 to 36500"),
        ({"retention-days": 7, "retention-period": "P8D"}, "send only one of them"),
    ],
)
def test_a_wrong_period_is_refused(admin: AsgiClient, config: Any, reason: str) -> None:
    answer = admin.post(PROJECT, {"queue-config": config})
    assert (answer.status, reason in answer.message()) == (400, True), answer.body
    assert admin.get(PROJECT).json() == {"queue-config": {}}


def test_settings_are_of_one_warehouse(admin: AsgiClient, warehouse: Warehouse, tmp_path: Any) -> None:
    profile = {"type": "local", "base-path": str(tmp_path / "other")}
    other = admin.post("/management/v1/warehouse", {"warehouse-name": "other", "storage-profile": profile}).json()
    admin.post(route(warehouse.id), {"queue-config": {"max-attempts": 3}})
    assert admin.get(route(other["id"])).json() == {"queue-config": {}}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "queue-config"),
        ({"queue-config": []}, "queue-config"),
        (
            {"queue-config": {"retries": 3}},
            "'retries' cannot be set for the queue tabular_purge: known are deletions-at-once, max-attempts",
        ),
        ({"queue-config": {"max-attempts": 0}}, "from 1 to 16"),
        ({"queue-config": {"deletions-at-once": 65}}, "from 1 to 64"),
        ({"queue-config": {"max-attempts": 17}}, "from 1 to 16"),
        ({"queue-config": {"max-attempts": "3"}}, "whole number"),
        ({"queue-config": {"max-attempts": True}}, "whole number"),
        ({"queue-config": {"max-attempts": None}}, "whole number"),
        ({"queue-config": {}, "max-seconds-since-last-heartbeat": 29}, "from 30 to 86400"),
        ({"queue-config": {}, "max-seconds-since-last-heartbeat": 10**12}, "from 30 to 86400"),
        ({"queue-config": {}, "other": 1}, "unknown member"),
    ],
)
def test_a_wrong_setting_is_refused(admin: AsgiClient, warehouse: Warehouse, body: Any, reason: str) -> None:
    answer = admin.post(route(warehouse.id), body)
    assert (answer.status, reason in answer.message()) == (400, True), answer.body
    assert admin.get(route(warehouse.id)).json() == {"queue-config": {}}


@pytest.mark.parametrize("queue", ["task_log_cleanup", "housekeeping", "x%00"])
def test_a_queue_that_is_none_of_warehouses_is_missing(admin: AsgiClient, warehouse: Warehouse, queue: str) -> None:
    assert admin.get(route(warehouse.id, f"{queue}/config")).error() == (404, "NotFoundException")
    answer = admin.post(route(warehouse.id, f"{queue}/config"), {"queue-config": {}})
    assert answer.error() == (404, "NotFoundException")
    assert "known are soft_deletion, tabular_purge" in answer.message()


def test_the_queue_of_soft_deletions_has_an_old_name(admin: AsgiClient, warehouse: Warehouse) -> None:
    settings = {"queue-config": {"max-attempts": 3}}
    assert admin.post(route(warehouse.id, "tabular_expiration/config"), settings).status == 204
    told = admin.get(route(warehouse.id, "soft_deletion/config")).json()
    assert told["queue-config"]["max-attempts"] == 3


def test_no_queue_is_scheduled_by_hand(admin: AsgiClient, client: AsgiClient, warehouse: Warehouse) -> None:
    answer = admin.post(route(warehouse.id, "tabular_purge/schedule"), {"scheduled-for": "2030-01-01T00:00:00Z"})
    assert answer.error() == (400, "BadRequestException")
    assert "cannot be scheduled manually" in answer.message()
    assert client.as_user("stranger").post(route(warehouse.id, "tabular_purge/schedule"), {}).status == 404


def test_who_may_read_and_change_settings(client: AsgiClient, warehouse: Warehouse, grant: Any) -> None:
    grant("reader", "describe")
    grant("editor", "modify")
    reader, editor, stranger = (client.as_user(name) for name in ("reader", "editor", "stranger"))
    body: dict[str, Any] = {"queue-config": {}}
    assert reader.get(route(warehouse.id)).status == 200
    assert reader.post(route(warehouse.id), body).error() == (403, "ForbiddenException")
    assert editor.post(route(warehouse.id), body).status == 204
    assert stranger.get(route(warehouse.id)).error() == (404, "NoSuchWarehouseException")
    assert stranger.post(route(warehouse.id), body).error() == (404, "NoSuchWarehouseException")
    assert stranger.get(PROJECT).error() == (404, "NoSuchProjectException")
    assert stranger.post(PROJECT, body).error() == (404, "NoSuchProjectException")


def test_info_lists_the_queues(admin: AsgiClient) -> None:
    assert admin.get("/management/v1/info").json()["queues"] == ["soft_deletion", "tabular_purge", "task_log_cleanup"]


def test_finished_tasks_are_removed_after_their_time(
    lake: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = fail_for_good(lake, monkeypatch, "failed")
    for name in ("a", "b", "c"):
        dropped(lake, name)
    newest, middle, oldest, _ = [each["task-id"] for each in listed(lake)]
    run(take(oldest))
    run(take(middle))
    age(oldest, 91)
    age(middle, 89)
    age(failed, 200)
    assert plan_task_log_cleanup(timestamp=0) == 1
    assert plan_task_log_cleanup(timestamp=0) == 0  # it is planned already
    monkeypatch.setattr(cleanup, "BATCH", 1)
    answer = admin.post("/management/v1/project/task/list", {}).json()["tasks"]
    assert [(each["queue-name"], each["status"]) for each in answer] == [("task_log_cleanup", "SCHEDULED")]
    assert answer[0]["entity"] == {"type": "project", "project-id": answer[0]["project-id"]}
    assert task_log_cleanup(task_id=answer[0]["task-id"]) == 1
    assert {each["task-id"] for each in listed(lake)} == {newest, middle, failed}
    one = admin.get(f"/management/v1/project/task/by-id/{answer[0]['task-id']}").json()
    assert (one["status"], one["message"]) == ("SUCCESS", "1 tasks were older than 90 days")
    assert plan_task_log_cleanup(timestamp=0) == 0
    admin.post(PROJECT, {"queue-config": {"retention-days": 7}})
    assert plan_task_log_cleanup(timestamp=0) == 1


def test_a_silent_task_is_given_the_time_that_is_set(lake: Lake, admin: AsgiClient) -> None:
    def job_state() -> str:
        with connection.cursor() as cursor:
            cursor.execute("select status::text from procrastinate_jobs where task_name = 'purge_location'")
            return str(cursor.fetchone()[0])

    def silent_for(seconds: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "update task set last_heartbeat_at = now() - make_interval(secs => %s) where queue_name = %s",
                [seconds, "tabular_purge"],
            )

    dropped(lake, "orders")
    job = take(listed(lake)[0]["task-id"])  # of no worker: as one that was pruned
    admin.post(route(lake.warehouse_id), {"queue-config": {}, "max-seconds-since-last-heartbeat": 300})
    silent_for(200)
    assert stalled._given_time([job.id]) == {job.id}
    silent_for(301)
    assert stalled._given_time([job.id]) == set()
    admin.post(route(lake.warehouse_id), {"queue-config": {}})
    silent_for(200)
    assert stalled._given_time([job.id]) == set()
    assert job_state() == "doing"
    assert told(lake, listed(lake)[0]["task-id"])["status"] == "RUNNING"
