"""`GET /management/v1/warehouse/{id}/table/{id}/metrics-reports`, and how long reports and idempotency keys are kept."""

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from procrastinate.contrib.django import app

from catalog.models import MetricsReport, Tabular
from catalog.services import periodic_tasks
from lakewarden import config, retention
from lakewarden.config import CatalogConfig
from lakewarden.idempotency import outcomes
from lakewarden.idempotency.models import IdempotencyRecord
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer


def report(number: int, kind: str = "scan-report") -> dict[str, Any]:
    return {"report-type": kind, "table-name": "sales.orders", "snapshot-id": number, "x": {"deep": [None, 2**62 + 1]}}


def send(lake: Lake, *reports: dict[str, Any], name: str = "orders") -> None:
    for each in reports:
        assert lake.client.post(lake.table(name, "metrics"), each).status == 204


def ask(lake: Lake, table: str, **query: str) -> Answer:
    route = f"/management/v1/warehouse/{lake.warehouse_id}/table/{table}/metrics-reports"
    return lake.client.get(route + ("?" + "&".join(f"{name}={value}" for name, value in query.items())))


@pytest.fixture
def table(lake: Lake) -> str:
    """The id of the table `orders`."""
    lake.create_table("orders")
    return str(Tabular.objects.get().uuid)


def snapshots(answer: Answer) -> list[int]:
    return [each["report"]["snapshot-id"] for each in answer.json()["metrics-reports"]]


def test_reports_are_told_newest_first_as_they_came(lake: Lake, table: str) -> None:
    send(lake, report(1), report(2, "commit-report"))
    lake.create_table("others")
    send(lake, report(3), name="others")

    told = ask(lake, table).json()

    assert told["next-page-token"] is None
    newest, oldest = told["metrics-reports"]
    assert (newest["report"], oldest["report"]) == (report(2, "commit-report"), report(1))
    assert (newest["report-type"], newest["actor"]) == ("commit-report", "oidc~engine")
    assert newest["received-at"] > oldest["received-at"]
    assert ask(lake, table, **{"report-type": "scan-report"}).json()["metrics-reports"] == [oldest]
    assert ask(lake, table, **{"report-type": "none"}).error() == (400, "BadRequestException")


def test_pages_are_complete_while_reports_come_in(lake: Lake, table: str) -> None:
    send(lake, *(report(number) for number in range(5)))
    MetricsReport.objects.update(received_at=timezone.now())  # the same moment: the id decides
    first = ask(lake, table, pageSize="2")
    send(lake, report(9))
    second = ask(lake, table, pageSize="2", pageToken=first.json()["next-page-token"])
    third = ask(lake, table, pageToken=second.json()["next-page-token"])
    assert [snapshots(each) for each in (first, second, third)] == [[4, 3], [2, 1], [0]]
    assert third.json()["next-page-token"] is None


def test_a_list_ends_after_a_hundred_unless_told(lake: Lake, table: str) -> None:
    one = {"tabular": Tabular.objects.get(), "actor": "x", "report_type": "scan-report"}
    MetricsReport.objects.bulk_create(MetricsReport(**one, report=report(number)) for number in range(101))
    told = ask(lake, table).json()
    assert len(told["metrics-reports"]) == 100
    assert told["next-page-token"]
    assert len(ask(lake, table, pageSize="1000").json()["metrics-reports"]) == 101


@pytest.mark.parametrize("token", ["x", "MTI", "MTIwMjQtMDEtMDFUMDA6MDA6MDAgMQ"])
def test_a_token_of_another_list_is_refused(lake: Lake, table: str, token: str) -> None:
    answer = ask(lake, table, pageToken=token)
    assert answer.error() == (400, "BadRequestException")
    assert "pageToken" in answer.message()


def test_numbers_of_any_size_come_back(lake: Lake, table: str) -> None:
    body = b'{"report-type":"scan-report","a":1e300,"b":9223372036854775808,"c":0.1}'
    assert lake.client.post(lake.table("orders", "metrics"), body=body).status == 204
    told = json.loads(ask(lake, table).body)["metrics-reports"][0]["report"]
    assert float(told.pop("a")) == 1e300
    assert told == {"report-type": "scan-report", "b": 9223372036854775808, "c": 0.1}


def test_a_registered_table_is_found_by_its_uuid(lake: Lake, table: str) -> None:
    file = lake.load("orders")["metadata-location"]
    lake.client.delete(lake.table("orders"))
    lake.client.post(lake.namespace("sales", "register"), {"name": "orders", "metadata-location": file})
    send(lake, report(1))
    assert snapshots(ask(lake, table)) == [1]


def test_only_readers_of_the_data_see_reports(lake: Lake, table: str, grant: Grant) -> None:
    send(lake, report(1))
    grant("reader", "select")
    grant("looker", "describe")
    assert ask(lake.as_user("reader"), table).status == 200
    assert ask(lake.as_user("looker"), table).error() == (403, "ForbiddenException")
    assert ask(lake.as_user("stranger"), table).error() == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize("name", ["orders", "00000000-0000-0000-0000-000000000001", "%00"])
def test_what_is_no_table_has_no_reports(lake: Lake, table: str, name: str) -> None:
    assert ask(lake, name).error() == (404, "NoSuchTableException")


def test_a_view_has_no_reports(lake: Lake) -> None:
    lake.create_view("report")
    assert ask(lake, str(Tabular.objects.get().uuid)).error() == (404, "NoSuchTableException")


def test_reports_past_the_configured_days_are_forgotten(
    lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    settings = config.current().model_copy(update={"catalog": CatalogConfig(metrics_retention_days=7)})
    monkeypatch.setattr(config, "current", lambda: settings)
    send(lake, *(report(number) for number in range(6)))
    old = timezone.now() - timedelta(days=7, seconds=1)
    MetricsReport.objects.filter(report__contains={"snapshot-id": 5}).update(received_at=timezone.now())
    MetricsReport.objects.exclude(report__contains={"snapshot-id": 5}).update(received_at=old)
    assert periodic_tasks.forget_metrics_reports(0) == 5
    assert periodic_tasks.forget_metrics_reports(0) == 0
    assert snapshots(ask(lake, table)) == [5]


def test_expired_idempotency_keys_are_forgotten(lake: Lake) -> None:
    for name in ("a", "b"):
        headers = {"idempotency-key": str(uuid.uuid4())}
        lake.client.post(lake.path("namespaces"), {"namespace": [name]}, headers=headers)
    old = timezone.now() - outcomes.LIFETIME - outcomes.GRACE - timedelta(seconds=1)
    IdempotencyRecord.objects.filter(data__namespace=["a"]).update(created_at=old)
    assert periodic_tasks.forget_idempotency_keys(0) == 1
    assert IdempotencyRecord.objects.get().data["namespace"] == ["b"]


def test_workers_know_the_periodic_tasks() -> None:
    known = {task.name for task in app.tasks.values()}
    periodic = {name for name, _ in app.periodic_registry.periodic_tasks}
    assert {"forget_metrics_reports", "forget_idempotency_keys"} <= known & periodic
