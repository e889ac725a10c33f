from typing import Any

import pytest

from lakewarden.audit.models import AuditEntry
from tenants.models import Project, Warehouse
from tests.servers.asgi_client import Answer, AsgiClient


def path(warehouse: Warehouse) -> str:
    return f"/management/v1/warehouse/{warehouse.id}/grants"


def entry(name: str, privilege: str) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"user": f"oidc~{name}"}}


def write(caller: AsgiClient, warehouse: Warehouse, *entries: dict[str, Any], side: str = "writes") -> Answer:
    return caller.post(path(warehouse), {side: list(entries)})


def test_granted_rights_count_at_once_and_revoked_ones_no_more(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse
) -> None:
    alice = client.as_user("alice")
    target = f"/management/v1/warehouse/{warehouse.id}"
    assert alice.get(target).status == 404
    assert write(admin, warehouse, entry("alice", "select")).status == 204
    assert alice.get(target).status == 200
    assert write(admin, warehouse, entry("alice", "select"), side="deletes").status == 204
    assert alice.get(target).status == 404


def test_grants_are_listed_by_principal_and_privilege(admin: AsgiClient, warehouse: Warehouse) -> None:
    write(admin, warehouse, entry("bob", "select"), entry("alice", "modify"), entry("alice", "create"))
    assert admin.get(path(warehouse)).json() == {
        "grants": [
            entry("admin", "ownership"),
            entry("alice", "create"),
            entry("alice", "modify"),
            entry("bob", "select"),
        ]
    }


def test_applying_twice_changes_nothing(admin: AsgiClient, warehouse: Warehouse) -> None:
    for _ in range(2):
        assert write(admin, warehouse, entry("alice", "select")).status == 204
        assert write(admin, warehouse, entry("bob", "select"), side="deletes").status == 204
    assert len(admin.get(path(warehouse)).json()["grants"]) == 2


def test_a_change_is_recorded_and_raises_the_epoch(admin: AsgiClient, warehouse: Warehouse) -> None:
    before = Project.objects.get(id=warehouse.project_id).authz_epoch
    write(admin, warehouse, entry("alice", "select"))
    assert Project.objects.get(id=warehouse.project_id).authz_epoch == before + 1
    assert AuditEntry.objects.get(action="updateGrants").details["writes"] == [
        {"privilege": "select", "principal": "oidc~alice"}
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            {"writes": [{"privilege": "select", "principal": {"role": "r"}}]},
            "writes[0].principal: roles are not served",
        ),
        ({"writes": [{"privilege": "select", "principal": {"user": "alice"}}]}, "<provider>~<subject>"),
        ({"writes": [{"privilege": "select", "principal": {"user": "oidc~a\u0000"}}]}, "<provider>~<subject>"),
        ({"writes": [{"privilege": "select", "principal": {"user": 1}}]}, "<provider>~<subject>"),
        ({"writes": [{"privilege": "select"}]}, "writes[0].principal"),
        ({"writes": [{"privilege": "fly", "principal": {"user": "oidc~a"}}]}, "one of create, describe"),
        ({"deletes": [{"privilege": "admin", "principal": {"user": "oidc~a"}}]}, "deletes[0].privilege"),
        ({"writes": [entry("a", "select")], "deletes": [entry("a", "select")]}, "both written and deleted"),
        ({"writes": [entry(str(number), "select") for number in range(101)]}, "at most 100"),
        ({"writes": "all"}, "writes"),
        ({"write": []}, "unknown member 'write'"),
    ],
)
def test_a_wrong_change_is_refused_as_a_whole(admin: AsgiClient, warehouse: Warehouse, body: Any, reason: str) -> None:
    answer = admin.post(path(warehouse), body)
    assert answer.status == 400
    assert reason in answer.message()
    assert len(admin.get(path(warehouse)).json()["grants"]) == 1


def test_an_engine_may_not_grant(engine: AsgiClient, warehouse: Warehouse) -> None:
    assert write(engine, warehouse, entry("engine", "ownership")).error() == (403, "ForbiddenException")
    assert engine.get(path(warehouse)).status == 403


def test_a_stranger_does_not_learn_that_the_warehouse_exists(stranger: AsgiClient, warehouse: Warehouse) -> None:
    assert stranger.get(path(warehouse)).error() == (404, "NoSuchWarehouseException")
    assert write(stranger, warehouse, entry("stranger", "select")).status == 404
