"""Every refusal leaves an audit row: who, what, which object, why; written later, and never with a secret in it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError

from lakewarden.audit import refusals
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.refusals import PENDING, Pending, Refusal
from tenants.models import Warehouse
from tests.integration.conftest import Grant
from tests.servers.asgi_client import AsgiClient

SECRET = "expired"  # the token that the test's issuer refuses
HEADERS = {"x-request-id": "trace-7", "user-agent": "Agent/1 " + "ü".encode().decode("latin-1") * 300}


@pytest.fixture(autouse=True)
def nothing_pending(warehouse: Warehouse) -> None:
    AuditEntry.objects.all().delete()
    PENDING.take()


def written() -> list[AuditEntry]:
    refusals.flush()
    return list(AuditEntry.objects.exclude(outcome="done").order_by("at", "id"))


def test_a_hidden_object_is_audited_in_its_project(stranger: AsgiClient, warehouse: Warehouse) -> None:
    path = f"/management/v1/warehouse/{warehouse.id}"
    assert stranger.get(path + "?secret=1", headers=HEADERS).status == 404
    (row,) = written()
    assert (row.outcome, row.actor, row.action) == ("denied", "oidc~stranger", "get_metadata")
    assert (row.object_type, row.object_id, row.project_id) == ("warehouse", str(warehouse.id), warehouse.project_id)
    assert (row.request_id, row.details) == ("trace-7", {"asked": f"GET {path}"})
    assert row.reason.startswith("Not allowed: get_metadata on this warehouse needs")
    assert row.reason.endswith("answered as if it did not exist")
    assert row.user_agent.startswith("Agent/1 ")
    assert len(row.user_agent.encode()) <= 256


def test_a_forbidden_action_is_audited(client: AsgiClient, grant: Grant, warehouse: Warehouse) -> None:
    grant("reader", "select")
    path = f"/catalog/v1/{warehouse.id}/namespaces"
    assert client.as_user("reader").post(path, {"namespace": ["a"]}).status == 403
    (row,) = written()
    assert (row.outcome, row.actor, row.action) == ("denied", "oidc~reader", "create_namespace")
    assert (row.object_type, row.object_id) == ("warehouse", str(warehouse.id))
    assert "create_namespace" in row.reason


def test_a_refusal_on_the_server_has_no_project(stranger: AsgiClient) -> None:
    assert stranger.post("/management/v1/project", {"project-name": "mine"}).status == 403
    (row,) = written()
    assert (row.action, row.object_type, row.project_id) == ("create_project", "server", None)


def test_the_facade_is_audited_too(stranger: AsgiClient, warehouse: Warehouse) -> None:
    assert stranger.get("/lakehouse/w/lake/v1/namespaces").status == 404
    (row,) = written()
    assert (row.action, row.object_id, row.project_id) == ("use", str(warehouse.id), warehouse.project_id)


@pytest.mark.parametrize(
    "path",
    ["/management/v1/warehouse/0197f1c2-0000-7000-8000-000000000000", "/management/v1/warehouse/no", "/rainbow"],
)
def test_what_is_really_missing_is_no_refusal(stranger: AsgiClient, path: str) -> None:
    assert stranger.get(path).status == 404
    assert written() == []


def test_what_is_allowed_is_no_refusal(admin: AsgiClient, warehouse: Warehouse) -> None:
    assert admin.get(f"/management/v1/warehouse/{warehouse.id}").status == 200
    assert admin.post("/management/v1/project", {}).status == 400
    assert written() == []


def test_a_bad_token_is_audited_without_the_token(client: AsgiClient, warehouse: Warehouse) -> None:
    path = f"/catalog/v1/{warehouse.id}/namespaces"
    assert client.as_user(SECRET).get(f"{path}?token={SECRET}", headers=HEADERS).status == 401
    (row,) = written()
    assert (row.outcome, row.actor, row.project_id) == ("unauthenticated", "anonymous", None)
    assert (row.action, row.object_type) == ("GET /catalog/v1/{prefix}/namespaces", "request")
    assert row.object_id == path
    assert row.details == {"asked": f"GET {path}", "source": "127.0.0.1", "count": 1}
    assert SECRET not in json.dumps([getattr(row, field.attname) for field in AuditEntry._meta.fields], default=str)


def test_a_storm_of_bad_tokens_is_a_row_a_second(client: AsgiClient) -> None:
    for number in range(40):
        client.as_user(SECRET).get(f"/management/v1/warehouse/{number}")
    rows = written()
    assert sum(row.details["count"] for row in rows) == 40
    assert len(rows) <= 5


def test_a_long_path_is_cut(client: AsgiClient) -> None:
    client.get("/management/v1/warehouse/" + "x" * 5000)
    (row,) = written()
    assert len(row.object_id) == len(row.details["asked"]) == 200


@pytest.mark.parametrize("name", ["%00", "%ff", "%ED%A0%80", "a%0Ab"])
def test_odd_paths_can_be_written(client: AsgiClient, name: str) -> None:
    assert client.get(f"/management/v1/warehouse/{name}").status == 401
    assert len(written()) == 1


def _refusal() -> Refusal:
    PENDING.take()
    return Refusal(
        outcome="denied",
        actor="oidc~eve",
        action="drop",
        object_type="table",
        object_id="1",
        project_id=None,
        reason="no",
        request_id="r",
        user_agent="",
        asked="DELETE /x",
    )


def test_what_is_lost_is_a_row_of_its_own(database: None) -> None:
    pending = Pending(capacity=1)
    for _ in range(4):
        pending.add(_refusal())
    refusals.flush(pending)
    lost = AuditEntry.objects.get(outcome="lost")
    assert lost.details == {"count": 3}
    assert AuditEntry.objects.filter(outcome="denied").count() == 1


def test_a_database_that_is_down_keeps_the_refusals(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pending = Pending(capacity=2)
    for action in ("read", "drop", "rename"):
        pending.add(replace(_refusal(), action=action))

    def down(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as patched:
        patched.setattr(type(AuditEntry.objects), "bulk_create", down)
        with pytest.raises(OperationalError):
            refusals.flush(pending)
    refusals.flush(pending)
    assert sorted(AuditEntry.objects.values_list("action", flat=True)) == ["drop", "loseRefusals", "read"]
