"""No caller can fill a table by requests: the rows that they cause are combined, limited and removed in time."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from catalog.api.hot import lists
from catalog.models import MetricsReport
from lakewarden import config
from lakewarden.audit import refusals
from lakewarden.audit.decision_buffer import DECISIONS
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.refusals import PENDING
from lakewarden.events import log
from lakewarden.events.models import EventSink, LoggedEvent, OutboxEvent
from lakewarden.events.periodic_tasks import keep_event_log
from lakewarden.idempotency.models import IdempotencyRecord
from lakewarden.paging import next_token
from lakewarden.usage import periodic_tasks as usage
from lakewarden.usage.models import EndpointCalls, Spending
from tenants.models.project import DEFAULT_PROJECT_ID
from tests.integration.catalog.lake import Lake


def _only_what_follows() -> None:
    PENDING.take()
    DECISIONS.take()
    AuditEntry.objects.all().delete()


def test_equal_refusals_are_one_row_with_their_number_and_times(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    _only_what_follows()
    for number in range(300):
        answer = outsider.client.delete(outsider.namespace("sales"), headers={"user-agent": f"agent/{number}"})
        assert answer.status == 404
    refusals.flush()
    (row,) = AuditEntry.objects.filter(outcome="denied")
    assert (row.actor, row.count) == ("oidc~outsider", 300)
    assert row.last_at is not None
    assert row.last_at > row.at


def test_reads_under_ever_new_names_of_programs_are_one_row(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`."""
    _only_what_follows()
    for number in range(50):
        assert reader.client.get(reader.table("orders"), headers={"user-agent": f"agent/{number}"}).status == 200
    refusals.flush()
    (row,) = AuditEntry.objects.filter(outcome="allowed")
    assert row.count == 50


def test_refusals_of_everything_at_once_end_in_one_row_that_counts_them(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    for number in range(110):
        assert lake.create_namespace(f"hidden{number}").status == 200
    _only_what_follows()
    for number in range(110):
        assert outsider.client.get(outsider.namespace(f"hidden{number}")).status == 404
    refusals.flush()
    rows = AuditEntry.objects.filter(actor="oidc~outsider")
    assert (rows.filter(outcome="denied").count(), rows.get(outcome="lost").count) == (100, 10)


def _limited(monkeypatch: pytest.MonkeyPatch, section: str, **limits: int) -> None:
    now = config.current()
    changed = {section: getattr(now, section).model_copy(update=limits)}
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update=changed))


def test_a_report_as_large_as_a_request_is_refused_by_name_of_the_limit(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`."""
    report = {"report-type": "scan-report", "filter": "x" * 5_000_000}
    refused = reader.client.post(reader.table("orders", "metrics"), report)
    assert refused.status == 413
    assert "at most 65536 are allowed (catalog.metrics_report_bytes)" in refused.message()
    unknown = reader.client.post(reader.table("orders", "metrics"), {"report-type": "diary"})
    assert "scan-report or commit-report is expected" in unknown.message()
    assert not MetricsReport.objects.exists()


def test_pages_after_ever_new_names_are_kept_within_their_memory(lake: Lake) -> None:
    """Rights: list on the warehouse."""
    assert lake.create_table("orders").status == 200
    before = lists._ANSWERS.held
    for number in range(50):
        token = next_token(f"{number}" + "z" * 2000)
        assert lake.client.get(lake.namespace("sales", "tables", pageToken=token)).status == 200
    kept = lists._ANSWERS.held - before
    assert kept > 40 * 4000  # the name, and the overhead of storing an answer, however short


def test_reports_without_end_cost_only_who_sends_them(
    lake: Lake, reader: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: select on `sales.orders`."""
    _limited(monkeypatch, "catalog", metrics_bytes_of_one_caller=100_000)
    report = {"report-type": "scan-report", "filter": "x" * 40_000}
    for _ in range(20):
        assert reader.client.post(reader.table("orders", "metrics"), report).status == 204
    assert lake.client.post(lake.table("orders", "metrics"), report).status == 204
    kept = list(MetricsReport.objects.values_list("actor", flat=True))
    assert sorted(kept) == ["oidc~engine", "oidc~reader", "oidc~reader"]
    assert Spending.objects.get(spender__endswith="oidc~reader").refused == 18


def test_a_warehouse_keeps_no_more_reports_than_its_own_bound(
    lake: Lake, reader: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: select on `sales.orders`, for several callers."""
    _limited(monkeypatch, "catalog", metrics_bytes_of_warehouse=100_000)
    report = {"report-type": "scan-report", "filter": "x" * 40_000}
    for caller in (reader, lake, reader, lake):
        assert caller.client.post(caller.table("orders", "metrics"), report).status == 204
    assert MetricsReport.objects.count() == 2


def test_requests_that_were_not_authorized_leave_no_key(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    client = outsider.client
    for number in range(20):
        key = {"idempotency-key": str(uuid.uuid4())}
        assert client.as_user("expired").post(outsider.path("namespaces"), {}, headers=key).status == 401
        assert client.post(outsider.path("namespaces"), {"namespace": 7, "n": number}, headers=key).status == 400
        assert client.post(outsider.path("namespaces"), {"namespace": ["mine"]}, headers=key).status in {403, 404}
        assert client.delete(outsider.namespace("sales"), headers=key).status == 404
        assert client.post(outsider.table("t" * 3000), {"requirements": 1, "updates": []}, headers=key).status == 400
    assert not IdempotencyRecord.objects.exists()


def test_refusals_of_authorized_requests_are_remembered_up_to_a_number(
    lake: Lake, outsider: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: create on `outside`."""
    _limited(monkeypatch, "idempotency", refusals_per_hour=5)
    assert outsider.create_table("mine", within="outside").status == 200
    for _ in range(9):
        key = {"idempotency-key": str(uuid.uuid4())}
        body = {"name": "mine", "schema": {"type": "struct", "fields": []}}
        refused = [outsider.client.post(outsider.namespace("outside", "tables"), body, headers=key) for _ in range(2)]
        assert [each.status for each in refused] == [409, 409]
    assert IdempotencyRecord.objects.filter(refusal_status=409).count() == 5


def test_the_outbox_empties_itself_into_days_that_go(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    for number in range(30):
        assert outsider.create_table(f"t{number}", within="outside").status == 200
    assert log.append_new(10_000) >= 30
    assert not OutboxEvent.objects.exists()
    now = timezone.now()
    LoggedEvent.objects.update(at=now - timedelta(days=9))
    sink = EventSink.objects.create(name="kafka", delivered=0, seen_at=now)
    keep_event_log(int(now.timestamp()))
    assert LoggedEvent.objects.count() >= 30  # a sink has not received them
    sink.delete()
    keep_event_log(int(now.timestamp()))
    assert not LoggedEvent.objects.exists()


def test_counts_of_calls_and_budgets_go_in_time(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`."""
    old, recent = timezone.now() - timedelta(days=91), timezone.now() - timedelta(days=89)
    for hour in (old, recent):
        EndpointCalls.objects.create(
            project_id=DEFAULT_PROJECT_ID, hour=hour, route="GET /x", status=200, count=1, created_at=hour
        )
        Spending.objects.create(budget="b", spender="s", period=hour, asked=1)
    assert usage.forget_usage(0) == 2
    assert (EndpointCalls.objects.get().hour, Spending.objects.get().period) == (recent, recent)
