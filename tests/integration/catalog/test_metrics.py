"""`POST …/tables/{table}/metrics`: reports are stored as they came."""

import json
from typing import Any

import pytest

from catalog.models import MetricsReport
from tests.installation import Grant
from tests.integration.catalog.lake import Lake

SCAN: dict[str, Any] = {
    "report-type": "scan-report",
    "table-name": "sales.orders",
    "snapshot-id": 2**63 - 1,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 2644235116}},
    "metadata": {"engine-name": "spark \x7f 🦆"},
}


def test_a_report_is_kept_with_who_sent_it(lake: Lake, grant: Grant) -> None:
    lake.create_table("orders")
    grant("reader", "select")
    assert lake.as_user("reader").client.post(lake.table("orders", "metrics"), SCAN).status == 204
    kept = MetricsReport.objects.get()
    assert (kept.report, kept.report_type, kept.actor) == (SCAN, "scan-report", "oidc~reader")
    assert kept.tabular.name == "orders"


def test_reports_go_with_their_table(lake: Lake) -> None:
    lake.create_table("orders")
    lake.client.post(lake.table("orders", "metrics"), SCAN)
    assert lake.client.delete(lake.table("orders")).status == 204
    assert not MetricsReport.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"report-type": 7}',
        b'{"report-type": "scan-report", "b": NaN}',
        b'{"report-type": "scan-report", "b": 1e999}',
        b'{"report-type": "scan-report", "b": "\xff"}',
        b'{"report-type": "scan-report", "b": "\\ud800"}',
        b'{"report-type": "scan-report\\u0000"}',
        b'{"report-type": "scan-report", "b": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"report-type": "scan-report", "b": ' + b"[" * 90000 + b"]" * 90000 + b"}",
    ],
)
def test_what_is_no_report_is_refused(lake: Lake, body: bytes) -> None:
    lake.create_table("orders")
    assert lake.client.post(lake.table("orders", "metrics"), body=body).error() == (400, "BadRequestException")
    assert not MetricsReport.objects.exists()


def test_large_numbers_are_kept(lake: Lake) -> None:
    lake.create_table("orders")
    body = b'{"report-type": "scan-report", "b": 123456789012345678901234567890}'
    assert lake.client.post(lake.table("orders", "metrics"), body=body).status == 204
    assert json.dumps(MetricsReport.objects.get().report["b"]) == "123456789012345678901234567890"


def test_a_report_about_no_table(lake: Lake) -> None:
    lake.create_view("report")
    for name in ("nowhere", "report"):
        assert lake.client.post(lake.table(name, "metrics"), SCAN).error() == (404, "NoSuchTableException")
