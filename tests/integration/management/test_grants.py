from typing import Any

import pytest

from catalog.models import Namespace, Tabular
from lakewarden.audit.models import AuditEntry
from tenants.models import Project, Warehouse
from tests.servers.asgi_client import Answer, AsgiClient


def path(warehouse: Warehouse) -> str:
    return f"/management/v1/warehouse/{warehouse.id}/grants"


def entry(name: str, privilege: str) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"user": f"oidc~{name}"}}


def role_entry(role_id: str, privilege: str) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"role": role_id}}


def listed(answer: Answer) -> list[dict[str, Any]]:
    """What was granted, as it is written."""
    return [{name: each[name] for name in ("privilege", "principal")} for each in answer.json()["grants"]]


def write(caller: AsgiClient, warehouse: Warehouse, *entries: dict[str, Any], side: str = "writes") -> Answer:
    return caller.post(path(warehouse), {side: list(entries)})


@pytest.fixture(autouse=True)
def known(client: AsgiClient, admin: AsgiClient) -> None:
    """Alice and Bob have called before, so that they can be granted something."""
    for name in ("alice", "bob"):
        assert client.as_user(name).get("/management/v1/whoami").status == 200


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
    assert listed(admin.get(path(warehouse))) == [
        entry("admin", "ownership"),
        entry("alice", "create"),
        entry("alice", "modify"),
        entry("bob", "select"),
    ]


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
        ({"writes": [{"privilege": "select", "principal": {"role": "r"}}]}, "a UUID is expected"),
        ({"writes": [{"privilege": "select", "principal": {"role": "r", "user": "oidc~a"}}]}, "writes[0].principal"),
        ({"writes": [{"privilege": "select", "principal": {"user": "alice"}}]}, "<provider>~<subject>"),
        ({"writes": [{"privilege": "select", "principal": {"user": "oidc~a\u0000"}}]}, "<provider>~<subject>"),
        ({"writes": [{"privilege": "select", "principal": {"user": 1}}]}, "<provider>~<subject>"),
        ({"writes": [{"privilege": "select"}]}, "writes[0].principal"),
        ({"writes": [{"privilege": "fly", "principal": {"user": "oidc~a"}}]}, "one of create, describe"),
        ({"deletes": [{"privilege": "admin", "principal": {"user": "oidc~a"}}]}, "deletes[0].privilege"),
        ({"writes": [entry("a", "select")], "deletes": [entry("a", "select")]}, "both granted and revoked"),
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


@pytest.fixture
def objects(admin: AsgiClient, warehouse: Warehouse) -> dict[str, str]:
    """The path below `/management/v1` of one object of each kind."""
    catalog = f"/catalog/v1/{warehouse.id}/namespaces"
    assert admin.post(catalog, {"namespace": ["sales"]}).status == 200
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    assert admin.post(f"{catalog}/sales/tables", {"name": "orders", "schema": schema}).status == 200
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["sales"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    view = {"name": "report", "schema": schema, "view-version": version, "properties": {}}
    assert admin.post(f"{catalog}/sales/views", view).status == 200
    place = f"warehouse/{warehouse.id}"
    namespace, table, report = Namespace.objects.get(), *Tabular.objects.order_by("kind")
    return {
        "server": "server",
        "project": "project",
        "warehouse": place,
        "namespace": f"{place}/namespace/{namespace.id}",
        "table": f"{place}/table/{table.uuid}",
        "view": f"{place}/view/{report.uuid}",
    }


@pytest.mark.parametrize("kind", ["server", "project", "warehouse", "namespace", "table", "view"])
def test_every_kind_of_object_has_grants(admin: AsgiClient, objects: dict[str, str], kind: str) -> None:
    path = f"/management/v1/{objects[kind]}/grants"
    vocabulary = admin.get("/management/v1/grants/grantable-privileges").json()["privileges"][kind]
    known = {each["name"] for each in vocabulary}
    told = admin.get(f"{path}/grantable-privileges").json()["privileges"]
    assert [(each["privilege"]["name"], each["allowed"]) for each in told] == [(name, True) for name in sorted(known)]
    assert all(each["privilege"] in vocabulary for each in told)
    writes = [entry("alice", name) for name in sorted(known)]
    assert admin.post(path, {"writes": writes}).status == 204
    assert listed(admin.get(f"{path}?principalUser=oidc~alice")) == writes
    assert admin.post(path, {"deletes": writes}).status == 204
    assert admin.get(f"{path}?principalUser=oidc~alice").json() == {"grants": []}


def test_a_grant_on_a_table_shows_the_way_to_it_and_no_more(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, objects: dict[str, str]
) -> None:
    alice, catalog = client.as_user("alice"), f"/catalog/v1/{warehouse.id}/namespaces"
    assert alice.get(f"{catalog}/sales/tables/orders").status == 404
    grants = f"/management/v1/{objects['table']}/grants"
    assert admin.post(grants, {"writes": [entry("alice", "select")]}).status == 204
    assert alice.get(f"{catalog}/sales/tables/orders").status == 200
    assert alice.get(f"{catalog}/sales").status == 200
    assert alice.get("/catalog/v1/config?warehouse=lake").status == 200
    assert alice.get(f"{catalog}/sales/views/report").status == 404
    assert admin.post(grants, {"deletes": [entry("alice", "select")]}).status == 204
    for path in (f"{catalog}/sales/tables/orders", f"{catalog}/sales", "/catalog/v1/config?warehouse=lake"):
        assert alice.get(path).status == 404


def test_a_role_passes_its_rights_to_its_members(admin: AsgiClient, client: AsgiClient, warehouse: Warehouse) -> None:
    role = admin.post("/management/v1/role", {"name": "readers"}).json()["id"]
    assert write(admin, warehouse, role_entry(role, "select")).status == 204
    alice, target = client.as_user("alice"), f"/management/v1/warehouse/{warehouse.id}"
    assert alice.get(target).status == 404
    members = {"members": [{"type": "user", "id": "oidc~alice"}]}
    assert admin.post(f"/management/v1/role/{role}/members", members).status == 200
    assert alice.get(target).status == 200
    assert role_entry(role, "select") in listed(admin.get(path(warehouse)))
    assert admin.delete(f"/management/v1/role/{role}/members/user/oidc~alice").status == 204
    assert alice.get(target).status == 404


def test_a_right_of_a_role_is_had_by_acting_as_it_too(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse
) -> None:
    role = admin.post("/management/v1/role", {"name": "readers"}).json()["id"]
    write(admin, warehouse, role_entry(role, "select"), entry("alice", "modify"))
    as_role = {"x-assume-role": role}
    alice, target = client.as_user("alice"), f"/management/v1/warehouse/{warehouse.id}"
    assert alice.get(target, headers=as_role).error() == (403, "ForbiddenException")
    admin.post(f"/management/v1/role/{role}/members", {"members": [{"user": "oidc~alice"}]})
    assert alice.get(target, headers=as_role).status == 200
    assert alice.post(f"{target}/rename", {"new-name": "sea"}, headers=as_role).status == 403
    assert alice.post(f"{target}/rename", {"new-name": "sea"}).status == 200
    unknown = {"x-assume-role": "0197f1c2-0000-7000-8000-000000000000"}
    for headers in (unknown, {"x-assume-role": "analysts"}):
        assert alice.get(target, headers=headers).error() == (400, "BadRequestException")


@pytest.mark.parametrize("kind", ["server", "warehouse", "table"])
def test_who_is_not_there_is_granted_nothing(admin: AsgiClient, objects: dict[str, str], kind: str) -> None:
    grants, privilege = f"/management/v1/{objects[kind]}/grants", "operator" if kind == "server" else "select"
    unknown = "0197f1c2-0000-7000-8000-000000000000"
    answer = admin.post(grants, {"writes": [entry("nobody", privilege)]})
    assert answer.error() == (404, "NoSuchUserException")
    expected = (400, "BadRequestException") if kind == "server" else (404, "NoSuchRoleException")
    assert admin.post(grants, {"writes": [role_entry(unknown, privilege)]}).error() == expected
    elsewhere = {"x-project-id": "other"}
    admin.post("/management/v1/project", {"project-name": "Other", "project-id": "other"})
    foreign = admin.post("/management/v1/role", {"name": "readers"}, headers=elsewhere).json()["id"]
    assert admin.post(grants, {"writes": [role_entry(foreign, privilege)]}).error() == expected


def test_who_passes_grants_passes_what_he_holds_and_nothing_else(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse
) -> None:
    write(admin, warehouse, entry("alice", "select"), entry("alice", "pass_grants"))
    alice, bob = client.as_user("alice"), client.as_user("bob")
    assert write(alice, warehouse, entry("bob", "select")).status == 204
    assert bob.get(f"/management/v1/warehouse/{warehouse.id}").status == 200
    for privilege in ("modify", "ownership", "manage_grants", "pass_grants"):
        assert write(alice, warehouse, entry("alice", privilege)).error() == (403, "ForbiddenException")
    assert write(bob, warehouse, entry("bob", "write")).status == 403


def test_everybody_may_read_his_own_grants(admin: AsgiClient, client: AsgiClient, warehouse: Warehouse) -> None:
    write(admin, warehouse, entry("alice", "select"))
    alice = client.as_user("alice")
    (own,) = alice.get(f"{path(warehouse)}?principalUser=oidc~alice").json()["grants"]
    held = own | {"resource-type": "warehouse", "resource-id": str(warehouse.id)}
    assert alice.get("/management/v1/grants").json() == {"grants": [held]}
    assert alice.get(f"{path(warehouse)}?principalUser=oidc~admin").status == 403
    assert alice.get("/management/v1/grants?principalUser=oidc~admin").status == 403
    assert admin.get("/management/v1/grants?principalUser=oidc~alice").json() == {"grants": [held]}


def test_the_last_administrator_cannot_be_taken_away(admin: AsgiClient) -> None:
    grants = "/management/v1/server/grants"
    own = {"deletes": [entry("admin", "admin")]}
    assert admin.post(grants, own).error() == (409, "LastAdministratorException")
    assert admin.post(grants, {"writes": [entry("alice", "operator")]}).status == 204
    assert admin.post(grants, own).status == 204
    assert admin.get(grants).status == 403


def test_a_repeated_change_leaves_no_trace(admin: AsgiClient, warehouse: Warehouse) -> None:
    write(admin, warehouse, entry("alice", "select"))
    epoch, audited = Project.objects.get(id=warehouse.project_id).authz_epoch, AuditEntry.objects.count()
    assert write(admin, warehouse, entry("alice", "select")).status == 204
    assert (Project.objects.get(id=warehouse.project_id).authz_epoch, AuditEntry.objects.count()) == (epoch, audited)


def test_grants_come_in_pages(admin: AsgiClient, warehouse: Warehouse) -> None:
    write(admin, warehouse, *(entry("alice", name) for name in ("create", "modify", "select")))
    answer = admin.get(f"{path(warehouse)}?pageSize=1").json()
    seen = answer["grants"]
    while "next-page-token" in answer:
        answer = admin.get(f"{path(warehouse)}?pageSize=1&pageToken={answer['next-page-token']}").json()
        seen += answer["grants"]
    assert seen == admin.get(path(warehouse)).json()["grants"]
    assert len(seen) == 4


def test_below_managed_access_owners_stop_granting(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, objects: dict[str, str]
) -> None:
    alice, table = client.as_user("alice"), f"/management/v1/{objects['table']}/grants"
    admin.post(table, {"writes": [entry("alice", "ownership")]})
    assert alice.post(table, {"writes": [entry("bob", "select")]}).status == 204
    managed = f"/management/v1/permissions/warehouse/{warehouse.id}"
    assert alice.post(f"{managed}/managed-access", {"managed-access": True}).status == 403
    for _ in range(2):
        assert admin.post(f"{managed}/managed-access", {"managed-access": True}).status == 200
    assert AuditEntry.objects.filter(action="setManagedAccess").count() == 1
    assert admin.get(managed).json() == {"managed-access": True}
    below = f"/management/v1/permissions/{objects['namespace']}"
    assert admin.get(below).json() == {"managed-access": False, "managed-access-inherited": True}
    assert alice.post(table, {"deletes": [entry("bob", "select")]}).status == 403
    assert admin.post(table, {"deletes": [entry("bob", "select")]}).status == 204
    assert admin.post(f"{managed}/managed-access", {"managed-access": False}).status == 200
    assert alice.post(table, {"writes": [entry("bob", "select")]}).status == 204


def test_assignments_are_grants_in_the_older_form(
    admin: AsgiClient, warehouse: Warehouse, objects: dict[str, str]
) -> None:
    for kind, place in objects.items():
        path = f"/management/v1/permissions/{place}"
        privilege = "operator" if kind == "server" else "describe"
        assert admin.post(f"{path}/assignments", {"writes": [{"type": privilege, "user": "oidc~bob"}]}).status == 204
        assert {"type": privilege, "user": "oidc~bob"} in admin.get(f"{path}/assignments").json()["assignments"]
        assert admin.get(f"{path}/access").json()["allowed-actions"]
        assert admin.get(f"{path}/authorizer-actions").json()["allowed-actions"]
    namespace = objects["namespace"].rpartition("/")[2]
    direct = admin.get(f"/management/v1/permissions/namespace/{namespace}/assignments")
    assert {"type": "describe", "user": "oidc~bob"} in direct.json()["assignments"]


def test_owners_and_members_of_a_role_are_assignments(admin: AsgiClient) -> None:
    role = admin.post("/management/v1/role", {"name": "readers"}).json()["id"]
    path = f"/management/v1/permissions/role/{role}/assignments"
    both = [{"type": "ownership", "user": "oidc~alice"}, {"type": "assignee", "user": "oidc~bob"}]
    assert admin.post(path, {"writes": both}).status == 204
    assert [each for each in both if each not in admin.get(path).json()["assignments"]] == []
    assert admin.post(path, {"writes": [{"type": "assignee", "user": "oidc~nobody"}], "deletes": both}).status == 404
    assert admin.post(path, {"deletes": both}).status == 204
    assert admin.get(path).json()["assignments"] == [{"type": "ownership", "user": "oidc~admin"}]
