"""Every decision leaves an audit row: who, what, which object, why; written later, and never with a secret in it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import DataError, OperationalError

from lakewarden import config
from lakewarden.audit import refusals
from lakewarden.audit.decision_buffer import DECISIONS, Decisions, Group, Key
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.refusals import PENDING, Pending, Refusal
from lakewarden.authz.decision_cache import HELD_PRIVILEGES
from lakewarden.context import Allowed
from tenants.models import Warehouse
from tests.installation import Grant
from tests.servers.asgi_client import AsgiClient

SECRET = "expired"  # the token that the test's issuer refuses
HEADERS = {"x-request-id": "trace-7", "user-agent": "Agent/1 " + "ü".encode().decode("latin-1") * 300}


@pytest.fixture(autouse=True)
def nothing_pending(warehouse: Warehouse) -> None:
    AuditEntry.objects.all().delete()
    PENDING.take()
    DECISIONS.take()


def written() -> list[AuditEntry]:
    """The refusals."""
    refusals.flush()
    return list(AuditEntry.objects.exclude(outcome__in=["done", "allowed"]).order_by("at", "id"))


def allowed() -> list[AuditEntry]:
    refusals.flush()
    return list(AuditEntry.objects.filter(outcome="allowed").order_by("at", "id"))


def test_a_hidden_object_is_audited_in_its_project(stranger: AsgiClient, warehouse: Warehouse) -> None:
    path = f"/management/v1/warehouse/{warehouse.id}"
    assert stranger.get(path + "?secret=1", headers=HEADERS).status == 404
    (row,) = written()
    assert (row.outcome, row.actor, row.action) == ("denied", "oidc~stranger", "get_metadata")
    assert (row.object_type, row.object_id, row.project_id) == ("warehouse", str(warehouse.id), warehouse.project_id)
    assert (row.request_id, row.details) == ("trace-7", {"asked": f"GET {path}"})
    assert row.reason.startswith("Not allowed: get_metadata on this warehouse needs")
    assert row.reason.endswith("answered as not found")
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


def test_what_is_allowed_is_a_decision_too(admin: AsgiClient, warehouse: Warehouse) -> None:
    assert admin.get(f"/management/v1/warehouse/{warehouse.id}", headers=HEADERS).status == 200
    assert admin.post("/management/v1/project", {}).status == 400
    (row,) = allowed()
    assert (row.actor, row.action, row.assumed_role) == ("oidc~admin", "get_metadata", "")
    assert (row.object_type, row.object_id, row.project_id) == ("warehouse", str(warehouse.id), warehouse.project_id)
    assert (row.request_id, row.count, row.reason) == ("trace-7", 1, "")
    assert row.details == {"privileges": ["see"]}
    assert row.user_agent.startswith("Agent/1 ")
    assert len(row.user_agent.encode()) <= 256
    assert written() == []


def test_equal_decisions_are_one_row_with_their_number(admin: AsgiClient, warehouse: Warehouse) -> None:
    for _ in range(5):
        admin.get(f"/management/v1/warehouse/{warehouse.id}")
    (row,) = allowed()
    assert row.count == 5


def test_hot_reads_are_recorded_as_those_of_django(engine: AsgiClient, warehouse: Warehouse) -> None:
    base = f"/catalog/v1/{warehouse.id}/namespaces"
    assert engine.post(base, {"namespace": ["a"]}).status == 200
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": False, "type": "int"}]}
    assert engine.post(f"{base}/a/tables", {"name": "t", "schema": schema}).status == 200
    paths = [base, f"{base}/a", f"{base}/a/tables", f"{base}/a/tables/t", "/catalog/v1/config?warehouse=lake"]
    told = {}
    for attempt in ("django", "hot"):
        refusals.flush()
        AuditEntry.objects.all().delete()
        if attempt == "django":
            HELD_PRIVILEGES.clear()
        for path in paths:
            assert engine.get(path, headers=HEADERS).status == 200
        fields = ("actor", "action", "object_type", "object_id", "project_id", "request_id", "user_agent", "details")
        told[attempt] = {str([getattr(row, name) for name in fields]) for row in allowed()}
    assert len(told["hot"]) == len(paths)
    assert told["hot"] <= told["django"]


def test_a_change_and_its_decision_carry_the_role_that_was_assumed(
    client: AsgiClient, admin: AsgiClient, warehouse: Warehouse
) -> None:
    role = admin.post("/management/v1/role", {"name": "ops"}).json()["id"]
    bob = client.as_user("bob")
    assert bob.post("/management/v1/user", {}).status == 201
    assert admin.post(f"/management/v1/role/{role}/members", {"members": [{"user": "oidc~bob"}]}).status == 200
    grant = {"writes": [{"privilege": "modify", "principal": {"role": role}}]}
    assert admin.post(f"/management/v1/warehouse/{warehouse.id}/grants", grant).status == 204
    renamed = f"/management/v1/warehouse/{warehouse.id}/rename"
    assert bob.post(renamed, {"new-name": "pond"}, headers={"x-assume-role": role}).status == 200
    refused = f"/management/v1/warehouse/{warehouse.id}/grants"
    assert bob.get(refused, headers={"x-assume-role": role}).status == 403
    refusals.flush()
    rows = AuditEntry.objects.filter(actor="oidc~bob", object_id=str(warehouse.id)).exclude(assumed_role="")
    assert {(row.outcome, row.assumed_role) for row in rows} == {("done", role), ("allowed", role), ("denied", role)}


def test_a_decision_about_a_user_names_him(admin: AsgiClient, stranger: AsgiClient) -> None:
    assert stranger.get("/management/v1/whoami").status == 200
    assert admin.get("/management/v1/user/oidc~stranger").status == 200
    assert stranger.get("/management/v1/user/oidc~admin").status == 404
    (denied,) = written()
    assert (denied.object_type, denied.object_id, denied.project_id) == ("user", "oidc~admin", None)
    assert ("user", "oidc~stranger") in {(row.object_type, row.object_id) for row in allowed()}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("all", {"allowed", "denied", "unauthenticated"}), ("denied", {"denied", "unauthenticated"}), ("none", set())],
)
def test_the_setting_says_what_is_recorded(
    admin: AsgiClient, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, setting: str, expected: set[str]
) -> None:
    now, stranger = config.current(), admin.as_user("stranger")
    audit = now.audit.model_copy(update={"decisions": setting})
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"audit": audit}))
    for caller in (admin, stranger, admin.as_user(SECRET)):
        caller.get(f"/management/v1/warehouse/{warehouse.id}")
    assert admin.post(f"/management/v1/warehouse/{warehouse.id}/rename", {"new-name": "sea"}).status == 200
    refusals.flush()
    found = set(AuditEntry.objects.values_list("outcome", flat=True))
    assert found == {*expected, "done"}


def test_a_bad_token_is_audited_without_the_token(client: AsgiClient, warehouse: Warehouse) -> None:
    path = f"/catalog/v1/{warehouse.id}/namespaces"
    assert client.as_user(SECRET).get(f"{path}?token={SECRET}", headers=HEADERS).status == 401
    (row,) = written()
    assert (row.outcome, row.actor, row.project_id) == ("unauthenticated", "anonymous", None)
    assert (row.action, row.object_type) == ("GET /catalog/v1/{prefix}/namespaces", "request")
    assert row.object_id == path
    assert row.details == {"asked": f"GET {path}", "source": "127.0.0.1", "count": 1}
    assert SECRET not in json.dumps([getattr(row, field.attname) for field in AuditEntry._meta.fields], default=str)


def test_a_storm_of_bad_tokens_is_one_row(client: AsgiClient) -> None:
    for number in range(40):
        client.as_user(SECRET).get(f"/management/v1/warehouse/{number}")
    (row,) = written()
    assert row.details["count"] == row.count == 40
    assert row.last_at is not None


def test_what_the_database_does_not_accept_is_counted(database: None) -> None:
    pending, decisions = Pending(), Decisions()
    pending.add(replace(_refusal(), action="\x00"))
    decisions.add(_key("t"), _group("t"))
    with pytest.raises(DataError):
        refusals.flush(pending, decisions)
    refusals.flush(pending, decisions)
    assert sorted(AuditEntry.objects.values_list("action", "count")) == [("loseDecisions", 1), ("loseRefusals", 1)]


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


def _key(object_id: str) -> Key:
    return ("oidc~eve", None, "get_metadata", "table", object_id)


def _group(object_id: str) -> Group:
    return Group(Allowed("get_metadata", "table", object_id, "p", ()), "r")


def test_what_is_lost_is_a_row_of_its_own(database: None) -> None:
    pending, decisions = Pending(capacity=1), Decisions(capacity=1)
    for number in range(4):
        pending.add(replace(_refusal(), object_id=str(number)))
        decisions.add(_key(f"t{number}"), _group(f"t{number}"))
    refusals.flush(pending, decisions)
    lost = AuditEntry.objects.filter(outcome="lost").order_by("action")
    assert [(row.action, row.project_id, row.count) for row in lost] == [
        ("loseDecisions", "p", 3),
        ("loseRefusals", None, 3),
    ]
    assert AuditEntry.objects.filter(outcome="denied").count() == 1
    assert AuditEntry.objects.filter(outcome="allowed").count() == 1


def test_many_decisions_at_once_are_all_written(database: None) -> None:
    decisions = Decisions(of_one_caller=4500)
    for number in range(4500):
        decisions.add(_key(f"t{number}"), _group(f"t{number}"))
    refusals.flush(Pending(), decisions)
    assert AuditEntry.objects.filter(outcome="allowed").values("object_id").distinct().count() == 4500


def test_a_database_that_is_down_keeps_all(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pending, decisions = Pending(capacity=2), Decisions()
    decisions.add(_key("t"), _group("t"))
    for action in ("read", "drop", "rename"):
        pending.add(replace(_refusal(), action=action))

    def down(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as patched:
        patched.setattr(refusals, "write", down)
        with pytest.raises(OperationalError):
            refusals.flush(pending, decisions)
    decisions.add(_key("t"), _group("t"))
    refusals.flush(pending, decisions)
    found = AuditEntry.objects.order_by("action").values_list("action", "count")
    assert list(found) == [("drop", 1), ("get_metadata", 2), ("loseRefusals", 1), ("read", 1)]
