"""The history of maintenance: pages, one table's runs, other tenants' warehouses."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from ingest.models import IngestMaintenanceRun
from tenants.models import Warehouse
from tests.servers.asgi_client import Answer, AsgiClient

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def runs(warehouse: Warehouse) -> list[IngestMaintenanceRun]:
    """Five runs, an hour apart, the oldest first; the last one failed."""
    return [
        IngestMaintenanceRun.objects.create(
            id=uuid4(),
            warehouse=warehouse,
            table_name="sales.orders" if number % 2 else "sales.users",
            operation="rewrite-data-files",
            state="failed" if number == 4 else "done",
            began_at=BEGIN + timedelta(hours=number),
            ended_at=BEGIN + timedelta(hours=number, minutes=1),
            files_before=2000,
            files_after=1,
            bytes_before=2_000_000,
            bytes_after=900_000,
            reason="2,000 data files are small",
            error="The disk is full." if number == 4 else "",
        )
        for number in range(5)
    ]


def ask(caller: AsgiClient, warehouse: Warehouse, query: str = "") -> Answer:
    return caller.get(f"/management/v1/warehouse/{warehouse.id}/maintenance{query}")


def test_the_newest_run_comes_first(admin: AsgiClient, warehouse: Warehouse, runs: list[IngestMaintenanceRun]) -> None:
    found = ask(admin, warehouse).json()["runs"]
    assert [each["id"] for each in found] == [str(each.id) for each in reversed(runs)]
    assert found[0]["error"] == "The disk is full."
    assert datetime.fromisoformat(found[1].pop("began-at")) == runs[3].began_at
    assert datetime.fromisoformat(found[1].pop("ended-at")) == runs[3].ended_at
    assert found[1] == {
        "id": str(runs[3].id),
        "table-name": "sales.orders",
        "operation": "rewrite-data-files",
        "state": "done",
        "files-before": 2000,
        "files-after": 1,
        "bytes-before": 2_000_000,
        "bytes-after": 900_000,
        "reason": "2,000 data files are small",
        "error": "",
    }


@pytest.mark.usefixtures("runs")
def test_pages_hold_each_run_once(admin: AsgiClient, warehouse: Warehouse) -> None:
    found, token = [], ""
    for _ in range(5):
        page = ask(admin, warehouse, f"?pageSize=2{token}").json()
        found += [each["id"] for each in page["runs"]]
        if "next-page-token" not in page:
            break
        token = f"&pageToken={page['next-page-token']}"
    assert len(found) == len(set(found)) == 5


@pytest.mark.usefixtures("runs")
def test_one_tables_runs(admin: AsgiClient, warehouse: Warehouse) -> None:
    names = [each["table-name"] for each in ask(admin, warehouse, "?table=sales.orders").json()["runs"]]
    assert names == ["sales.orders", "sales.orders"]
    assert ask(admin, warehouse, "?table=sales.none").json() == {"runs": []}


@pytest.mark.parametrize("token", ["MTIwMjY", "MXNvb24gbm93"])
def test_a_token_of_another_list_is_refused(admin: AsgiClient, warehouse: Warehouse, token: str) -> None:
    assert ask(admin, warehouse, f"?pageToken={token}").status == 400


def test_the_history_goes_with_its_warehouse(warehouse: Warehouse, runs: list[IngestMaintenanceRun]) -> None:
    warehouse.delete()
    assert not IngestMaintenanceRun.objects.filter(id__in=[each.id for each in runs]).exists()
