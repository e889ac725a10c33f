"""Explanations and who-may lists over REST, with the chain of grants that decides; refused to callers who may not ask."""

from collections.abc import Callable
from typing import Any

import pytest

from catalog.models import Namespace, Tabular
from lakewarden import backends, config
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import ACTIONS, ObjectType
from lakewarden.authz.allow_all import AllowAllAuthorizer
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.events.models import OutboxEvent
from tenants import access
from tenants.models import Project, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tests.integration.catalog.lake import SCHEMA, VIEW_VERSION
from tests.servers.asgi_client import AsgiClient

M = "/management/v1"
KINDS = ("server", "project", "role", "warehouse", "namespace", "table", "view")
ACTION = {
    "server": "create_project",
    "project": "rename",
    "role": "update",
    "warehouse": "rename",
    "namespace": "delete",
    "table": "drop",
    "view": "drop",
}
UNKNOWN = "0197f1c2-0000-7000-8000-000000000000"

Give = Callable[..., None]


@pytest.fixture
def places(admin: AsgiClient, warehouse: Warehouse) -> dict[str, str]:
    """The path of one object of each kind."""
    catalog = f"/catalog/v1/{warehouse.id}/namespaces"
    assert admin.post(catalog, {"namespace": ["sales"]}).status == 200
    assert admin.post(f"{catalog}/sales/tables", {"name": "orders", "schema": SCHEMA}).status == 200
    view = {"name": "report", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    assert admin.post(f"{catalog}/sales/views", view).status == 200
    role = admin.post(f"{M}/role", {"name": "readers"}).json()["id"]
    place = f"{M}/warehouse/{warehouse.id}"
    table, report = Tabular.objects.order_by("kind")
    return {
        "server": f"{M}/server",
        "project": f"{M}/project",
        "role": f"{M}/role/{role}",
        "warehouse": place,
        "namespace": f"{place}/namespace/{Namespace.objects.get().id}",
        "table": f"{place}/table/{table.uuid}",
        "view": f"{place}/view/{report.uuid}",
    }


@pytest.fixture
def give(admin: AsgiClient, client: AsgiClient, places: dict[str, str]) -> Give:
    """`give("table", "alice", "select")` grants to `oidc~alice`, who is known from then on."""

    def granted(kind: str, name: str, *privileges: str, role: str = "") -> None:
        if not role:
            assert client.as_user(name).get(f"{M}/whoami").status == 200
        principal = {"role": role} if role else {"user": f"oidc~{name}"}
        writes = [{"privilege": each, "principal": principal} for each in privileges]
        answer = admin.post(f"{places[kind]}/grants", {"writes": writes})
        assert answer.status == 204, answer.body

    return granted


def why(caller: AsgiClient, place: str, action: str, **query: str) -> Any:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    answer = caller.get(f"{place}/explanation?action={action}&{asked}")
    assert answer.status == 200, answer.body
    return answer.json()


def listed(caller: AsgiClient, place: str, action: str, query: str = "") -> list[str]:
    answer = caller.get(f"{place}/who-may?action={action}{query}")
    assert answer.status == 200, answer.body
    return [next(iter(each["principal"].values())) for each in answer.json()["principals"]]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object_is_explained(admin: AsgiClient, places: dict[str, str], kind: str) -> None:
    told = why(admin, places[kind], ACTION[kind])
    assert (told["allowed"], told["missing"]) == (True, [])
    (because,) = told["because"]
    assert because["privilege"] in told["needs"][0]
    assert because["grant"]["principal"] == {"user": "oidc~admin"}
    assert "oidc~admin" in listed(admin, places[kind], ACTION[kind])


def test_the_chain_is_told_from_the_grant_down_to_the_object(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, places: dict[str, str], give: Give
) -> None:
    give("warehouse", "alice", "modify")
    namespace, table = (places[kind].rpartition("/")[2] for kind in ("namespace", "table"))
    told = why(client.as_user("alice"), places["table"], "commit")
    assert told == {
        "allowed": True,
        "action": "commit",
        "needs": [["write"]],
        "because": [
            {
                "privilege": "write",
                "grant": {
                    "privilege": "modify",
                    "principal": {"user": "oidc~alice"},
                    "object-type": "warehouse",
                    "object-id": str(warehouse.id),
                },
                "through-roles": [],
                "then": [
                    f"write on warehouse {warehouse.id}",
                    f"write on namespace {namespace}",
                    f"write on table {table}",
                ],
            }
        ],
        "missing": [],
    }
    asked = why(admin, places["table"], "commit", principalUser="oidc~alice")
    assert asked["because"][0]["grant"]["granted-by"] == "oidc~admin"


def test_roles_on_the_way_are_named(admin: AsgiClient, client: AsgiClient, places: dict[str, str], give: Give) -> None:
    outer = places["role"].rpartition("/")[2]
    inner = admin.post(f"{M}/role", {"name": "interns"}).json()["id"]
    assert client.as_user("alice").get(f"{M}/whoami").status == 200
    assert admin.post(f"{M}/role/{inner}/members", {"members": [{"user": "oidc~alice"}]}).status == 200
    assert admin.post(f"{M}/role/{outer}/members", {"members": [{"role": inner}]}).status == 200
    give("namespace", "", "select", role=outer)
    (because,) = why(client.as_user("alice"), places["table"], "read_data")["because"]
    assert because["grant"]["principal"] == {"role": outer}
    assert because["through-roles"] == [
        {"role": inner, "name": "interns", "by": "membership"},
        {"role": outer, "name": "readers", "by": "membership"},
    ]
    (of_role,) = why(admin, places["table"], "read_data", principalRole=inner)["because"]
    assert [each["name"] for each in of_role["through-roles"]] == ["readers"]


def test_roles_of_the_token_and_assumed_roles_say_so(
    admin: AsgiClient, client: AsgiClient, places: dict[str, str], give: Give
) -> None:
    source = {"name": "analysts", "provider-id": "oidc", "source-id": "analysts"}
    role = admin.post(f"{M}/role", source).json()["id"]
    give("table", "", "select", role=role)
    alice = client.as_user("alice+analysts")
    (because,) = why(alice, places["table"], "read_data")["because"]
    assert because["through-roles"] == [{"role": role, "name": "analysts", "by": "token"}]
    assuming = type(alice)({**alice.headers, "x-assume-role": role})
    (because,) = why(assuming, places["table"], "read_data")["because"]
    assert because["through-roles"] == [{"role": role, "name": "analysts", "by": "assumed"}]
    assert why(admin, places["table"], "read_data", principalUser="oidc~alice")["allowed"] is False


def test_what_is_missing_is_told(client: AsgiClient, places: dict[str, str], give: Give) -> None:
    give("namespace", "alice", "modify")
    told = why(client.as_user("alice"), places["namespace"], "move")
    assert told["allowed"] is False
    assert told["needs"] == [["manage_grants"], ["modify"]]
    assert told["missing"] == [["manage_grants"]]
    assert [each["privilege"] for each in told["because"]] == ["modify"]


def test_everybody_may_ask_why_he_may_not_administer_the_server(stranger: AsgiClient) -> None:
    told = why(stranger, f"{M}/server", "create_project")
    assert (told["allowed"], told["missing"]) == (False, [["admin", "operator"]])


def test_managed_access_is_the_reason_why_an_owner_does_not_grant(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, places: dict[str, str], give: Give
) -> None:
    give("table", "alice", "ownership")
    assert why(client.as_user("alice"), places["table"], "read_grants")["allowed"] is True
    managed = places["warehouse"].replace(M, f"{M}/permissions") + "/managed-access"
    assert admin.post(managed, {"managed-access": True}).status == 200
    told = why(client.as_user("alice"), places["table"], "read_grants")
    assert told["allowed"] is False
    assert told["managed-access"] == {"object-type": "warehouse", "object-id": str(warehouse.id)}
    assert "managed-access" not in why(client.as_user("alice"), places["table"], "drop")


def test_what_is_seen_from_below_is_explained_by_the_grant_below(
    admin: AsgiClient, client: AsgiClient, places: dict[str, str], give: Give
) -> None:
    give("table", "alice", "select")
    table = places["table"].rpartition("/")[2]
    (because,) = why(client.as_user("alice"), places["warehouse"], "use")["because"]
    assert (because["grant"]["object-type"], because["grant"]["object-id"]) == ("table", table)
    assert because["then"] == [f"see on warehouse {places['warehouse'].rpartition('/')[2]}"]
    (because,) = why(client.as_user("alice"), places["role"], "read")["because"]
    assert [step.partition(" on ")[0] for step in because["then"]] == ["see", "describe"]
    assert listed(admin, places["warehouse"], "use") == ["oidc~admin", "oidc~alice"]


def test_an_administrator_of_the_server_learns_no_id_in_a_project(
    admin: AsgiClient, client: AsgiClient, places: dict[str, str], give: Give
) -> None:
    give("table", "alice", "select")
    give("server", "root", "admin")
    root = client.as_user("root")
    (because,) = why(root, places["project"], "get_metadata", principalUser="oidc~alice")["because"]
    assert because["grant"] == {"privilege": "select", "principal": {"user": "oidc~alice"}, "object-type": "table"}
    assert (
        places["table"].rpartition("/")[2]
        not in root.get(f"{places['project']}/who-may?action=get_metadata").body.decode()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_about_others_only_readers_of_the_grants_are_told(
    client: AsgiClient, places: dict[str, str], give: Give, kind: str
) -> None:
    give("project", "alice", "modify")
    alice = client.as_user("alice")
    for query in (
        f"explanation?action={ACTION[kind]}&principalUser=oidc~admin",
        f"explanation?action={ACTION[kind]}&principalRole={places['role'].rpartition('/')[2]}",
        f"who-may?action={ACTION[kind]}",
    ):
        assert alice.get(f"{places[kind]}/{query}").error() == (403, "ForbiddenException")


def test_an_owner_of_a_role_is_not_told_who_has_rights_in_the_project(
    client: AsgiClient, places: dict[str, str], give: Give
) -> None:
    give("project", "alice", "role_creator")
    alice = client.as_user("alice")
    own = alice.post(f"{M}/role", {"name": "mine"}).json()["id"]
    assert why(alice, f"{M}/role/{own}", "update")["allowed"] is True
    for query in ("who-may?action=read", "explanation?action=read&principalUser=oidc~admin"):
        assert alice.get(f"{M}/role/{own}/{query}").error() == (403, "ForbiddenException")


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_hidden_object_is_missing(stranger: AsgiClient, places: dict[str, str], kind: str) -> None:
    for query in ("explanation", "explanation?principalUser=oidc~admin&x=1", "who-may"):
        asked = f"{query}{'&' if '?' in query else '?'}action={ACTION[kind]}"
        hidden = stranger.get(f"{places[kind]}/{asked}")
        if kind == "project":
            missing = stranger.get(f"{places[kind]}/{asked}", headers={"x-project-id": "gone"})
            assert hidden.body.replace(DEFAULT_PROJECT_ID.encode(), b"gone") == missing.body
        else:
            identifier = places[kind].rpartition("/")[2]
            missing = stranger.get(f"{places[kind].replace(identifier, UNKNOWN)}/{asked}")
            assert hidden.body.replace(identifier.encode(), UNKNOWN.encode()) == missing.body
        assert hidden.status == missing.status == 404


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "action is missing"),
        ("action=", "'' is not an action on a warehouse"),
        ("action=commit", "'commit' is not an action on a warehouse: one of accept_moved_namespace, activate"),
        ("action=%00%ED%A0%80", "is not an action on a warehouse"),
        ("action=" + "x" * 5000, "is not an action on a warehouse"),
        ("action=use&principalUser=alice", "<provider>~<subject>"),
        ("action=use&principalUser=oidc~a%00", "<provider>~<subject>"),
        ("action=use&principalRole=readers", "a UUID is expected"),
        (f"action=use&principalRole={UNKNOWN}&principalUser=oidc~a", "both given"),
    ],
)
def test_bad_questions_are_refused(admin: AsgiClient, places: dict[str, str], query: str, reason: str) -> None:
    answer = admin.get(f"{places['warehouse']}/explanation?{query}")
    assert answer.error() == (400, "BadRequestException")
    assert reason in answer.message()


@pytest.mark.parametrize("query", ["expand=maybe", "pageSize=0", "pageToken=x", "pageToken=MQAA"])
def test_bad_pages_are_refused(admin: AsgiClient, places: dict[str, str], query: str) -> None:
    assert admin.get(f"{places['warehouse']}/who-may?action=use&{query}").error() == (400, "BadRequestException")


def test_roles_of_another_project_are_missing_and_unknown_users_hold_nothing(
    admin: AsgiClient, places: dict[str, str]
) -> None:
    elsewhere = {"x-project-id": "other"}
    assert admin.post(f"{M}/project", {"project-name": "Other", "project-id": "other"}).status == 201
    foreign = admin.post(f"{M}/role", {"name": "readers"}, headers=elsewhere).json()["id"]
    for role in (foreign, UNKNOWN):
        answer = admin.get(f"{places['table']}/explanation?action=drop&principalRole={role}")
        assert answer.error() == (404, "NoSuchRoleException")
        assert answer.message() == f"Role does not exist: {role}"
    assert why(admin, places["table"], "drop", principalUser="oidc~nobody")["allowed"] is False


def test_a_deleted_user_holds_nothing_and_that_is_said(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, places: dict[str, str], give: Give
) -> None:
    give("warehouse", "alice", "select")
    assert admin.delete(f"{M}/user/oidc~alice").status == 204
    # as a restored backup would have it
    chain = access.warehouse_chain(warehouse)
    ledger.give(chain, [(PrincipalId("oidc~alice"), Privilege.SELECT)], granted_by=PrincipalId("oidc~admin"))
    told = why(admin, places["warehouse"], "use", principalUser="oidc~alice")
    assert (told["allowed"], told["because"]) == (False, [])
    assert "deleted" in told["remark"]
    assert listed(admin, places["warehouse"], "use") == ["oidc~admin"]


def test_who_may_lists_roles_and_on_demand_their_members(
    admin: AsgiClient, client: AsgiClient, places: dict[str, str], give: Give
) -> None:
    role = places["role"].rpartition("/")[2]
    give("namespace", "alice", "select")
    give("namespace", "", "write", role=role)
    assert client.as_user("bob").get(f"{M}/whoami").status == 200
    assert admin.post(f"{M}/role/{role}/members", {"members": [{"user": "oidc~bob"}]}).status == 200
    assert listed(admin, places["table"], "commit") == ["oidc~admin", role]
    assert listed(admin, places["table"], "read_data") == ["oidc~admin", "oidc~alice", role]
    assert listed(admin, places["table"], "commit", "&expand=true") == ["oidc~admin", "oidc~bob", role]


def test_who_may_counts_what_a_principal_has_by_his_roles(
    admin: AsgiClient, client: AsgiClient, places: dict[str, str], give: Give
) -> None:
    role = places["role"].rpartition("/")[2]
    give("namespace", "alice", "modify")
    give("namespace", "", "manage_grants", role=role)
    assert admin.post(f"{M}/role/{role}/members", {"members": [{"user": "oidc~alice"}]}).status == 200
    assert listed(admin, places["namespace"], "move") == ["oidc~admin", "oidc~alice"]


def test_who_may_comes_in_pages(admin: AsgiClient, places: dict[str, str], give: Give) -> None:
    names = [f"user-{number}" for number in range(5)]
    for name in names:
        give("warehouse", name, "select")
    give("warehouse", "user-2-not", "create")
    path, seen, token = f"{places['table']}/who-may?action=read_data&pageSize=2", [], ""
    for _ in range(3):
        answer = admin.get(path + token).json()
        seen += [each["principal"]["user"] for each in answer["principals"]]
        token = f"&pageToken={answer.get('next-page-token')}"
    assert "next-page-token" not in answer
    assert seen == ["oidc~admin", *(f"oidc~{name}" for name in names)]


def test_asking_changes_nothing(admin: AsgiClient, places: dict[str, str]) -> None:
    epoch = Project.objects.get(id=DEFAULT_PROJECT_ID).authz_epoch
    before = AuditEntry.objects.filter(outcome="done").count(), OutboxEvent.objects.count()
    for kind, place in places.items():
        for action in ACTIONS[ObjectType(kind)]:
            assert why(admin, place, action.value)["action"] == action.value
    assert (AuditEntry.objects.filter(outcome="done").count(), OutboxEvent.objects.count()) == before
    assert Project.objects.get(id=DEFAULT_PROJECT_ID).authz_epoch == epoch


def test_where_authorization_is_off_no_grant_is_given_as_the_reason(
    admin: AsgiClient, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config.current()
    off = settings.model_copy(
        update={"authorization": settings.authorization.model_copy(update={"backend": "allow-all"})}
    )
    everything = AllowAllAuthorizer()
    monkeypatch.setattr(config, "current", lambda: off)
    monkeypatch.setattr(backends, "authorizer", lambda: everything)
    for question in ("explanation", "who-may"):
        answer = admin.get(f"{places['table']}/{question}?action=drop")
        assert answer.error() == (406, "UnsupportedOperationException")
        assert "Authorization is off" in answer.message()
