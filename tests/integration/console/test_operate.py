"""What operators see: status, events, activity, and the audit as a file; each only with its right."""

import csv
from io import StringIO
from typing import Any

import pytest

from ingest.models import IngestLogHead, IngestSource
from lakewarden.audit import refusals
from lakewarden.events.models import DeadLetter
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.console.visitor import Visitor, send
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def orders(admin: AsgiClient, warehouse: Warehouse) -> dict[str, Any]:
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales", properties={"owner": "=1+1"}).status == 200
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    return created


@pytest.mark.parametrize("page", ["/console/status", "/console/status?now=true", "/console/events"])
def test_operators_pages_are_for_administrators(
    visitor: Visitor, warehouse: Warehouse, grant: Grant, page: str
) -> None:
    grant("bob", "ownership")
    assert visitor("admin").get(page).status == 200
    for other in ("bob", "stranger"):
        refused = visitor(other).get(page)
        assert refused.status == 403
        assert "Can grant it: an administrator of the server" in refused.body.decode()


def test_the_status_is_what_doctor_finds(visitor: Visitor, warehouse: Warehouse) -> None:
    shown = visitor("admin").get("/console/status?now=true").body.decode()
    assert "Check again" in shown
    assert "database" in shown
    assert str(warehouse.id) not in shown, "an administrator of the server need not see warehouses"


def test_letters_are_dropped_by_the_name_of_the_sink_and_only_by_operators(
    visitor: Visitor, warehouse: Warehouse
) -> None:
    answer = send(
        visitor("admin"), "/console/projects", "/console/events/letters", sink="hook", verb="drop", name="hook"
    )
    assert answer.status == 403
    assert not DeadLetter.objects.exists()


def test_activity_shows_calls_and_change_data(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], grant: Grant
) -> None:
    page = f"/console/warehouses/{warehouse.id}/activity"
    assert "No change data was sent" in visitor("admin").get(page).body.decode()
    IngestLogHead.objects.create(warehouse=warehouse, last_position=5, buffered_events=1234, total_events=5000)
    now = "2026-11-22T20:00:00Z"
    IngestSource.objects.create(
        warehouse=warehouse, principal="oidc~sender", source_id="<b>tills</b>", connected_at=now, last_activity_at=now
    )
    shown = visitor("admin").get(page).body.decode()
    assert "1,234" in shown
    assert "pipeline not running" in shown
    assert "&lt;b&gt;tills" in shown
    part = visitor("admin").call("GET", page, headers={"hx-request": "true"})
    assert "<html" not in part.body.decode()
    grant("bob", "select")
    # as `/status` of the gateway: whoever may describe the warehouse sees who sends
    assert "oidc~sender" in visitor("bob").get(page).body.decode()
    assert visitor("stranger").get(page).status == 404


def test_the_audit_is_exported_without_formulas(visitor: Visitor, orders: dict[str, Any], grant: Grant) -> None:
    grant("bob", "ownership")
    refusals.flush()
    answer = visitor("admin").get("/console/audit/export?action=createTable")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(StringIO(answer.body.decode())))
    assert {each["action"] for each in rows} == {"createTable"}
    assert rows[0]["actor"] == "oidc~admin"
    assert visitor("bob").get("/console/audit/export").status == 403
    assert visitor("stranger").get("/console/audit/export").status == 404
    assert visitor("admin").get("/console/audit/export?outcome=odd").status == 400
