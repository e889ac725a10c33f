"""`GET …/actions`: what the caller, or another principal, may do to each kind of object."""

from dataclasses import dataclass
from uuid import uuid4

import pytest

from catalog.models import Namespace, Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import ACTIONS, ObjectType, ServerAction
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger import members
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.ids import new_id
from tenants import access
from tenants.models import Project, Role, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import ADMIN, Grant
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

IN_WAREHOUSE = ("namespace", "table", "view", "generic-table")


def make_role(name: str, project_id: str = DEFAULT_PROJECT_ID) -> Role:
    identifier = new_id()
    return Role.objects.create(
        id=identifier, project_id=project_id, name=name, name_key=name, source_id=str(identifier)
    )


@dataclass(frozen=True)
class Place:
    """The paths of one object of each kind."""

    warehouse: Warehouse
    role: Role
    paths: dict[str, str]


@pytest.fixture
def place(engine: AsgiClient, warehouse: Warehouse) -> Place:
    lake = Lake(engine, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    assert lake.create_table("orders").status == 200
    assert lake.create_view("report").status == 200
    assert lake.create_generic("birds").status == 200
    role = make_role("readers")
    within = f"warehouse/{warehouse.id}"
    paths = {
        "server": "server",
        "project": "project",
        "role": f"role/{role.id}",
        "warehouse": within,
        "namespace": f"{within}/namespace/{Namespace.objects.get().id}",
        "table": f"{within}/table/{Tabular.objects.get(kind='table').uuid}",
        "view": f"{within}/view/{Tabular.objects.get(kind='view').uuid}",
        "generic-table": f"{within}/generic-table/{Tabular.objects.get(kind='generic-table').uuid}",
    }
    return Place(warehouse, role, paths)


def asked(caller: AsgiClient, place: Place, kind: str, query: str = "") -> Answer:
    return caller.get(f"/management/v1/{place.paths[kind]}/actions{query}")


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    (member,) = answer.json().items()
    assert member[0] == "allowed-actions"
    assert all(set(each) == {"action"} for each in member[1])
    return [each["action"] for each in member[1]]


OF_OPERATORS = {ServerAction.CONTROL_EVENT_DELIVERY}
"""Administrators may grant themselves the privilege that these need, but do not have it."""


def all_of(kind: str) -> list[str]:
    return sorted(action.value for action in ACTIONS[ObjectType(kind)] if action not in OF_OPERATORS)


@pytest.mark.parametrize("kind", ["server", "project", "warehouse", "role"])
def test_an_administrator_who_owns_everything_may_do_all(admin: AsgiClient, place: Place, kind: str) -> None:
    assert names(asked(admin, place, kind)) == all_of(kind)


def test_actions_are_those_of_what_is_held(client: AsgiClient, grant: Grant, place: Place) -> None:
    grant("reader", "select")
    reader = client.as_user("reader")
    assert names(asked(reader, place, "table")) == ["get_metadata", "get_tasks", "include_in_list", "read_data"]
    assert "select" in names(asked(reader, place, "view"))
    assert "create_table" not in names(asked(reader, place, "namespace"))
    grant("reader", "create")
    assert {"create_table", "create_view", "create_namespace"} <= set(names(asked(reader, place, "namespace")))


def test_what_is_granted_and_revoked_counts_at_once(client: AsgiClient, grant: Grant, place: Place) -> None:
    grant("reader", "describe")
    reader = client.as_user("reader")
    assert "write_data" not in names(asked(reader, place, "table"))
    grant("reader", "write")
    assert "write_data" in names(asked(reader, place, "table"))


def test_short_path_answers_as_the_long_one(admin: AsgiClient, place: Place) -> None:
    assert admin.get("/management/server/actions").json() == admin.get("/management/v1/server/actions").json()


def test_the_server_is_known_to_everybody(stranger: AsgiClient, place: Place) -> None:
    assert names(asked(stranger, place, "server")) == []


@pytest.mark.parametrize("kind", ["project", "role", "warehouse", *IN_WAREHOUSE])
def test_a_hidden_object_answers_like_a_missing_one(stranger: AsgiClient, place: Place, kind: str) -> None:
    hidden = asked(stranger, place, kind)
    other = str(uuid4())
    headers = {"x-project-id": other} if kind == "project" else {}
    known = DEFAULT_PROJECT_ID if kind == "project" else place.paths[kind].rpartition("/")[2]
    missing = stranger.get(f"/management/v1/{place.paths[kind].replace(known, other)}/actions", headers=headers)
    assert hidden.error() == missing.error() == (404, f"NoSuch{kind.title().replace('-', '')}Exception")
    assert hidden.message().replace(known, other) == missing.message()


@pytest.mark.parametrize("kind", ["warehouse", "role", *IN_WAREHOUSE])
@pytest.mark.parametrize("strange", ["no-id", "%00", "..%2f..", "x" * 300, "%F0%9F%A6%86"])
def test_what_is_no_id_is_missing(admin: AsgiClient, place: Place, kind: str, strange: str) -> None:
    before, _, _ = place.paths[kind].rpartition("/")
    answer = admin.get(f"/management/v1/{before}/{strange}/actions")
    assert answer.error() == (404, f"NoSuch{kind.title().replace('-', '')}Exception")


@pytest.mark.parametrize("kind", IN_WAREHOUSE)
def test_an_object_of_another_warehouse_is_missing(admin: AsgiClient, place: Place, kind: str) -> None:
    path = place.paths[kind].replace(str(place.warehouse.id), str(uuid4()))
    assert admin.get(f"/management/v1/{path}/actions").error() == (
        404,
        f"NoSuch{kind.title().replace('-', '')}Exception",
    )


def test_a_view_is_no_table(admin: AsgiClient, place: Place) -> None:
    path = place.paths["view"].replace("/view/", "/table/")
    assert admin.get(f"/management/v1/{path}/actions").error() == (404, "NoSuchTableException")


@pytest.mark.parametrize("kind", ["warehouse", *IN_WAREHOUSE])
def test_asking_about_somebody_else(admin: AsgiClient, grant: Grant, place: Place, kind: str) -> None:
    grant("reader", "select")
    other = names(asked(admin, place, kind, "?principalUser=oidc~reader"))
    assert other == names(asked(AsgiClient(admin.headers).as_user("reader"), place, kind))
    assert names(asked(admin, place, kind, "?principalUser=oidc~nobody")) == []


def test_a_deleted_user_holds_nothing(admin: AsgiClient, client: AsgiClient, grant: Grant, place: Place) -> None:
    assert client.as_user("leaver").get("/management/v1/whoami").status == 200
    assert admin.delete("/management/v1/user/oidc~leaver").status == 204
    grant("leaver", "select")
    assert names(asked(admin, place, "table", "?principalUser=oidc~leaver")) == []


def test_asking_about_somebody_else_is_not_answered_from_what_the_caller_may(admin: AsgiClient, place: Place) -> None:
    asked(admin, place, "warehouse")
    assert names(asked(admin, place, "warehouse", "?principalUser=oidc~nobody")) == []
    assert names(asked(admin, place, "warehouse")) == all_of("warehouse")


@pytest.mark.parametrize("kind", ["server", "project", "role", "warehouse", *IN_WAREHOUSE])
def test_asking_about_somebody_else_takes_the_right_to_read_grants(
    client: AsgiClient, grant: Grant, place: Place, kind: str
) -> None:
    grant("modifier", "modify")
    ledger.give(
        access.project_chain(DEFAULT_PROJECT_ID),
        [(PrincipalId("oidc~modifier"), Privilege.MODIFY)],
        granted_by=ADMIN,
    )
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    modifier = client.as_user("modifier")
    answer = asked(modifier, place, kind, "?principalUser=oidc~admin")
    assert answer.error() == (403, "ForbiddenException")
    assert "manage_grants" in answer.message()
    assert asked(modifier, place, kind, "?principalUser=oidc~modifier").status == 200


def test_a_hidden_object_is_missing_for_questions_about_others_too(stranger: AsgiClient, place: Place) -> None:
    assert asked(stranger, place, "table", "?principalUser=oidc~admin").error() == (404, "NoSuchTableException")


def test_asking_about_a_role(admin: AsgiClient, place: Place) -> None:
    query = f"?principalRole={place.role.id}"
    assert names(asked(admin, place, "table", query)) == []
    ledger.give(
        access.warehouse_chain(place.warehouse),
        [(place.role.principal, Privilege.SELECT)],
        granted_by=ADMIN,
    )
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    assert "read_data" in names(asked(admin, place, "table", query))
    assert names(asked(admin, place, "server", query)) == []


def test_members_of_a_role_hold_what_it_holds(client: AsgiClient, admin: AsgiClient, place: Place) -> None:
    ledger.give(
        access.warehouse_chain(place.warehouse),
        [(place.role.principal, Privilege.SELECT)],
        granted_by=ADMIN,
    )
    members.add(place.role.principal, [PrincipalId("oidc~alice")], project_id=DEFAULT_PROJECT_ID, added_by=ADMIN)
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    assert "read_data" in names(asked(client.as_user("alice"), place, "table"))
    assert "read_data" in names(asked(admin, place, "table", "?principalUser=oidc~alice"))


@pytest.mark.parametrize("kind", ["project", "role", "warehouse", "table"])
def test_a_role_of_another_project_is_missing(admin: AsgiClient, place: Place, kind: str) -> None:
    Project.objects.create(id="blue", name="Blue", name_key="blue")
    foreign = make_role("readers", "blue")
    told = [asked(admin, place, kind, f"?principalRole={identifier}") for identifier in (foreign.id, uuid4())]
    assert [answer.error() for answer in told] == [(404, "NoSuchRoleException")] * 2
    named = {"x-project-id": DEFAULT_PROJECT_ID}
    assert admin.get(f"/management/v1/role/{foreign.id}/actions", headers=named).error() == (404, "NoSuchRoleException")


@pytest.mark.parametrize(
    "query",
    [
        "?principalUser=alice",
        "?principalUser=",
        "?principalUser=oidc~a%00",
        "?principalUser=oidc~a%0A",
        "?principalUser=oidc~" + "x" * 300,
        "?principalUser=role:1",
        "?principalRole=no-id",
        "?principalRole=",
        "?principalRole=%00",
        "?principalUser=oidc~a&principalRole=0197f1c2-0000-7000-8000-000000000000",
    ],
)
def test_a_principal_that_is_none_is_refused(admin: AsgiClient, place: Place, query: str) -> None:
    for kind in ("server", "role", "table"):
        answer = asked(admin, place, kind, query)
        assert answer.error() == (400, "BadRequestException")
        assert "principal" in answer.message()


def test_questions_change_nothing(admin: AsgiClient, place: Place) -> None:
    before = AuditEntry.objects.filter(outcome="done").count()
    for kind in place.paths:
        asked(admin, place, kind, "?principalUser=oidc~alice")
    assert AuditEntry.objects.filter(outcome="done").count() == before


def user_actions(caller: AsgiClient, user: str, query: str = "") -> Answer:
    return caller.get(f"/management/v1/user/{user}/actions{query}")


@pytest.fixture
def alice(client: AsgiClient, admin: AsgiClient) -> AsgiClient:
    """A user who has been seen."""
    alice = client.as_user("alice")
    assert alice.get("/management/v1/whoami").status == 200
    return alice


def test_everybody_may_read_himself_and_an_administrator_may_all(admin: AsgiClient, alice: AsgiClient) -> None:
    assert names(user_actions(alice, "oidc~alice")) == ["read", "read_role_assignments"]
    assert names(user_actions(admin, "oidc~alice")) == ["delete", "read", "read_role_assignments", "update"]


def test_what_others_may_do_to_a_user(admin: AsgiClient, alice: AsgiClient) -> None:
    told = {
        name: names(user_actions(admin, "oidc~alice", f"?principalUser=oidc~{name}"))
        for name in ("alice", "bob", "admin")
    }
    assert told == {
        "alice": ["read", "read_role_assignments"],
        "bob": [],
        "admin": ["delete", "read", "read_role_assignments", "update"],
    }
    assert user_actions(alice, "oidc~alice", "?principalUser=oidc~bob").error() == (403, "ForbiddenException")


def test_a_user_whom_the_caller_may_not_see_is_missing(alice: AsgiClient, client: AsgiClient) -> None:
    bob = client.as_user("bob")
    hidden, missing = user_actions(bob, "oidc~alice"), user_actions(bob, "oidc~ecila")
    assert hidden.error() == missing.error() == (404, "NoSuchUserException")
    assert hidden.message().replace("alice", "ecila") == missing.message()
    for strange in ("%00", "no-id", "x" * 300):
        assert user_actions(bob, strange).error() == (404, "NoSuchUserException")
