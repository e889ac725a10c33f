"""Numbers of tables and views, hour by hour."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from procrastinate.contrib.django import app

from catalog.models import WarehouseStatistics
from catalog.services import periodic_tasks, warehouse_statistics
from lakewarden import config
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


def ask(caller: AsgiClient, warehouse: Warehouse, query: str = "") -> Answer:
    return caller.get(f"/management/v1/warehouse/{warehouse.id}/statistics{query}")


def numbers(answer: Answer) -> list[tuple[int, int]]:
    assert answer.status == 200, answer.body
    return [(hour["number-of-tables"], hour["number-of-views"]) for hour in answer.json()["stats"]]


def keep(warehouse: Warehouse, *, hours_ago: int, tables: int) -> datetime:
    """A row of an earlier hour."""
    hour = warehouse_statistics.end_of_hour(timezone.now()) - timedelta(hours=hours_ago)
    WarehouseStatistics.objects.create(warehouse=warehouse, timestamp=hour, number_of_tables=tables, number_of_views=0)
    return hour


def age_everything() -> None:
    WarehouseStatistics.objects.update(updated_at=timezone.now() - timedelta(minutes=2))


def test_the_current_hour_is_counted(admin: AsgiClient, lake: Lake, warehouse: Warehouse) -> None:
    lake.create_table("a")
    lake.create_table("b")
    lake.create_view("v")
    told = ask(admin, warehouse).json()
    assert told["warehouse-ident"] == str(warehouse.id)
    (hour,) = told["stats"]
    assert (hour["number-of-tables"], hour["number-of-views"]) == (2, 1)
    end, seen = datetime.fromisoformat(hour["timestamp"]), datetime.fromisoformat(hour["updated-at"])
    assert (end.minute, end.second, end.microsecond) == (0, 0, 0)
    assert timedelta(0) <= end - seen <= timedelta(hours=1)
    assert "next-page-token" not in told


def test_it_is_counted_at_most_once_a_minute(admin: AsgiClient, lake: Lake, warehouse: Warehouse) -> None:
    assert numbers(ask(admin, warehouse)) == [(0, 0)]
    lake.create_table("a")
    assert numbers(ask(admin, warehouse)) == [(0, 0)]
    age_everything()
    assert numbers(ask(admin, warehouse)) == [(1, 0)]
    lake.client.delete(lake.table("a"))
    age_everything()
    assert numbers(ask(admin, warehouse)) == [(0, 0)]


def test_pages_go_back_in_time(admin: AsgiClient, lake: Lake, warehouse: Warehouse) -> None:
    for hours in range(1, 6):
        keep(warehouse, hours_ago=hours, tables=hours)
    seen: list[tuple[int, int]] = []
    query = "?page_size=2"
    for _ in range(3):
        answer = ask(admin, warehouse, query)
        seen += numbers(answer)
        query = f"?pageSize=2&pageToken={answer.json().get('next-page-token')}"
    assert seen == [(number, 0) for number in range(6)]
    assert "next-page-token" not in answer.json()


@pytest.mark.parametrize(
    "query", ["?page_size=0", "?pageSize=x", "?page_token=%21", "?pageToken=MXg", "?page_token=MTIwMjYtMDEtMDE"]
)
def test_a_bad_page_is_refused(admin: AsgiClient, warehouse: Warehouse, query: str) -> None:
    assert ask(admin, warehouse, query).error() == (400, "BadRequestException")


def test_the_hourly_task_keeps_every_warehouse_and_forgets_what_is_old(
    admin: AsgiClient, lake: Lake, warehouse: Warehouse, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = {"type": "local", "base-path": str(tmp_path / "second")}
    admin.post("/management/v1/warehouse", {"warehouse-name": "second", "storage-profile": profile})
    lake.create_table("a")
    keep(warehouse, hours_ago=90 * 24 + 2, tables=1)
    kept = keep(warehouse, hours_ago=90 * 24 - 2, tables=1)
    monkeypatch.setattr(warehouse_statistics, "_BATCH", 1)
    now = datetime.now(UTC)
    assert periodic_tasks.keep_warehouse_statistics(int(now.timestamp())) == 1
    assert periodic_tasks.keep_warehouse_statistics(int(now.timestamp())) == 0
    rows = WarehouseStatistics.objects.order_by("timestamp", "number_of_tables")
    hour = warehouse_statistics.end_of_hour(now)
    assert list(rows.values_list("timestamp", "number_of_tables")) == [(kept, 1), (hour, 0), (hour, 1)]


def test_the_days_are_configured(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config.current()
    catalog = settings.catalog.model_copy(update={"statistics_retention_days": 1})
    changed = settings.model_copy(update={"catalog": catalog})
    monkeypatch.setattr(config, "current", lambda: changed)
    keep(warehouse, hours_ago=26, tables=1)
    assert periodic_tasks.keep_warehouse_statistics(int(timezone.now().timestamp())) == 1


def test_workers_know_the_task() -> None:
    assert "keep_warehouse_statistics" in {name for name, _ in app.periodic_registry.periodic_tasks}


def test_only_who_sees_all_of_the_warehouse_sees_its_numbers(
    client: AsgiClient, stranger: AsgiClient, warehouse: Warehouse, grant: Grant
) -> None:
    grant("alice", "describe")
    assert ask(client.as_user("alice"), warehouse).status == 200
    assert ask(stranger, warehouse).error() == (404, "NoSuchWarehouseException")


def test_numbers_are_of_one_warehouse(admin: AsgiClient, lake: Lake, warehouse: Warehouse, tmp_path: Any) -> None:
    profile = {"type": "local", "base-path": str(tmp_path / "second")}
    other = admin.post("/management/v1/warehouse", {"warehouse-name": "second", "storage-profile": profile}).json()
    lake.create_table("a")
    assert numbers(ask(admin, warehouse)) == [(1, 0)]
    assert numbers(admin.get(f"/management/v1/warehouse/{other['id']}/statistics")) == [(0, 0)]
