"""The older permissions API as its clients use it: names, principals, relations, and what happens twice."""

import pytest

from catalog.models import Namespace, Tabular
from lakewarden.authz.actions import ObjectType
from management.permission_actions import AUTHORIZER_ACTIONS
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import AsgiClient

M = "/management/v1"
P = f"{M}/permissions"


@pytest.fixture
def places(admin: AsgiClient, engine: AsgiClient, client: AsgiClient, warehouse: Warehouse) -> dict[str, str]:
    """One object of each kind; Alice has called before and holds nothing."""
    assert client.as_user("alice").get(f"{M}/whoami").status == 200
    lake = Lake(engine, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    assert lake.create_table("orders").status == 200
    assert lake.create_view("report").status == 200
    within = f"warehouse/{warehouse.id}"
    namespace = Namespace.objects.get().id
    return {
        "server": "server",
        "project": "project",
        "project-by-id": f"project/{DEFAULT_PROJECT_ID}",
        "role": f"role/{admin.post(f'{M}/role', {'name': 'readers'}).json()['id']}",
        "warehouse": within,
        "namespace": f"{within}/namespace/{namespace}",
        "namespace-by-id": f"namespace/{namespace}",
        "table": f"{within}/table/{Tabular.objects.get(kind='table').uuid}",
        "view": f"{within}/view/{Tabular.objects.get(kind='view').uuid}",
    }


KINDS = ("server", "project", "role", "warehouse", "namespace", "namespace-by-id", "table", "view")
BELOW_SERVER = tuple(kind for kind in KINDS if kind not in {"server", "role"})


def names(caller: AsgiClient, path: str, query: str = "") -> list[str]:
    answer = caller.get(f"{P}/{path}{query}")
    assert answer.status == 200, answer.body
    allowed: list[str] = answer.json()["allowed-actions"]
    return allowed


@pytest.mark.parametrize("kind", [*KINDS, "project-by-id"])
@pytest.mark.parametrize("what", ["access", "authorizer-actions"])
def test_a_stranger_has_none_of_the_rights_of_who_asks_about_them(
    admin: AsgiClient, places: dict[str, str], kind: str, what: str
) -> None:
    if (kind, what) == ("project-by-id", "authorizer-actions"):
        assert admin.get(f"{P}/{places[kind]}/{what}").error() == (404, "NoSuchRouteException")
        return
    path = f"{places[kind]}/{what}"
    assert names(admin, path)
    assert names(admin, path, "?principalUser=oidc~alice") == []
    assert admin.get(f"{P}/{path}?principalUser=alice").error() == (400, "BadRequestException")


@pytest.mark.parametrize("kind", ["project", "warehouse", "namespace", "table", "view"])
def test_what_a_role_may_do_is_asked_by_its_id(admin: AsgiClient, places: dict[str, str], kind: str) -> None:
    role = places["role"].rpartition("/")[2]
    asked = f"?principalRole={role}"
    before = names(admin, f"{places[kind]}/access", asked)
    write = {"writes": [{"type": "modify", "role": role}]}
    assert admin.post(f"{P}/{places[kind]}/assignments", write).status == 204
    assert set(names(admin, f"{places[kind]}/access", asked)) > set(before)


@pytest.mark.parametrize("kind", BELOW_SERVER)
@pytest.mark.parametrize("what", ["access", "authorizer-actions"])
def test_asking_about_others_takes_the_right_to_read_grants(
    client: AsgiClient, admin: AsgiClient, places: dict[str, str], kind: str, what: str
) -> None:
    write = {"writes": [{"type": "modify", "user": "oidc~alice"}]}
    assert admin.post(f"{P}/{places[kind]}/assignments", write).status == 204
    alice = client.as_user("alice")
    assert alice.get(f"{P}/{places[kind]}/{what}?principalUser=oidc~alice").status == 200
    assert alice.get(f"{P}/{places[kind]}/{what}?principalUser=oidc~admin").error() == (403, "ForbiddenException")


@pytest.mark.parametrize("kind", ["server", *BELOW_SERVER])
def test_what_others_may_grant_is_asked_too(admin: AsgiClient, places: dict[str, str], kind: str) -> None:
    if kind == "namespace-by-id":
        return
    path = f"{M}/{places[kind]}/grants/grantable-privileges"
    own = admin.get(path).json()["privileges"]
    assert {"name", "display-name", "description", "category", "resource-type"} == set(own[0]["privilege"])
    assert any(each["allowed"] for each in own)
    others = admin.get(f"{path}?principalUser=oidc~alice").json()["privileges"]
    assert [each["privilege"] for each in others] == [each["privilege"] for each in own]
    assert not any(each["allowed"] for each in others)


def test_the_names_are_those_of_the_clients(admin: AsgiClient, places: dict[str, str]) -> None:
    """A generated client refuses an answer that has a name which it does not know."""
    assert names(admin, "server/access") == sorted(
        [
            "create_project",
            "update_users",
            "delete_users",
            "list_users",
            "grant_admin",
            "provision_users",
            "read_assignments",
        ]
    )
    on_warehouse = names(admin, f"{places['warehouse']}/access")
    assert {"modify_storage", "modify_storage_credential", "change_ownership", "grant_select"} <= set(on_warehouse)
    assert {"update_storage", "grant_write", "use", "read_grants"}.isdisjoint(on_warehouse)
    assert names(admin, f"{places['role']}/authorizer-actions") == sorted(AUTHORIZER_ACTIONS[ObjectType.ROLE])
    assert set(names(admin, f"{places['role']}/access")) >= {"assume", "delete", "read", "update"}


def test_members_may_assume_and_no_more(client: AsgiClient, admin: AsgiClient, places: dict[str, str]) -> None:
    path = f"{places['role']}/authorizer-actions"
    write = {"writes": [{"type": "assignee", "user": "oidc~alice"}]}
    assert names(admin, path, "?principalUser=oidc~alice") == []
    assert admin.post(f"{P}/{places['role']}/assignments", write).status == 204
    assert names(admin, path, "?principalUser=oidc~alice") == ["assume"]


@pytest.mark.parametrize("kind", [*KINDS, "project-by-id"])
def test_relations_select_assignments_and_owners_come_first(
    admin: AsgiClient, places: dict[str, str], kind: str
) -> None:
    path, other = f"{P}/{places[kind]}/assignments", {"server": "operator", "role": "assignee"}.get(kind, "select")
    assert admin.post(path, {"writes": [{"type": other, "user": "oidc~alice"}]}).status == 204
    listed = admin.get(path).json()
    kinds = [each["type"] for each in listed["assignments"]]
    first = {"server": "admin", "project": "project_admin"}.get(kind.removesuffix("-by-id"), "ownership")
    assert (kinds[0], other in kinds) == (first, True)
    chosen = admin.get(f"{path}?relations={other}").json()["assignments"]
    assert {"type": other, "user": "oidc~alice"} in chosen
    assert {each["type"] for each in chosen} == {other}
    both = admin.get(f"{path}?relations={other}&relations={first}").json()["assignments"]
    assert {each["type"] for each in both} == {first, other}
    refused = admin.get(f"{path}?relations=rainbow")
    assert (refused.status, "rainbow" in refused.message(), other in refused.message()) == (400, True, True)
    assert listed.get("project-id") == (DEFAULT_PROJECT_ID if kind.startswith("project") else None)


@pytest.mark.parametrize("kind", KINDS)
def test_an_assignment_is_added_and_removed_once_on_the_older_routes(
    admin: AsgiClient, places: dict[str, str], kind: str
) -> None:
    path = f"{P}/{places[kind]}/assignments"
    entry = {"type": {"server": "operator", "role": "assignee"}.get(kind, "select"), "user": "oidc~alice"}
    assert admin.post(path, {"deletes": [entry]}).error() == (404, "TupleNotFoundError")
    assert admin.post(path, {"writes": [entry]}).status == 204
    assert admin.post(path, {"writes": [entry]}).error() == (409, "TupleAlreadyExistsError")
    assert admin.post(path, {"deletes": [entry]}).status == 204
    assert entry not in admin.get(path).json()["assignments"]


def test_a_list_of_grants_says_on_what_and_since_when(admin: AsgiClient, places: dict[str, str]) -> None:
    _, warehouse, kind, table = places["table"].split("/")
    (own,) = admin.get(f"{M}/{places['table']}/grants").json()["grants"]
    assert own["resource"] == {"type": kind, "table-id": table, "warehouse-id": warehouse}
    assert own["recognized"]
    assert own["created-at"]
    held = admin.get(f"{M}/grants?principalUser=oidc~engine&pageSize=2").json()
    assert len(held["grants"]) == 2
    rest = admin.get(f"{M}/grants?principalUser=oidc~engine&pageToken={held['next-page-token']}").json()
    kinds = {each["resource"]["type"] for each in (*held["grants"], *rest["grants"])}
    assert kinds == {"warehouse", "namespace", "table", "view"}


def test_everybody_may_ask_what_they_may_do_on_the_server(client: AsgiClient, places: dict[str, str]) -> None:
    alice = client.as_user("alice")
    assert names(alice, "server/access") == []
    assert alice.get(f"{M}/server/grants?principalUser=oidc~alice").json()["grants"] == []
    assert alice.get(f"{M}/server/grants").error() == (403, "ForbiddenException")
    assert alice.get(f"{P}/server/access?principalUser=oidc~admin").error() == (403, "ForbiddenException")
