from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import UserAction
from lakewarden.authz.ledger.models import Grant, Membership
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.errors import NoSuchUser
from lakewarden.events.models import OutboxEvent
from tenants import access
from tenants.models import Project, User, Warehouse
from tenants.services import user_removal
from tenants.services.user_removal import LastAdministrator
from tests.servers.asgi_client import AsgiClient

USER = "/management/v1/user"
BOB = {"id": "oidc~bob", "name": "Bob", "user-type": "human"}


def path_of(name: str) -> str:
    return f"{USER}/{quote(f'oidc~{name}', safe='')}"


def known(client: AsgiClient, *names: str) -> None:
    for name in names:
        assert client.as_user(name).post(USER, {}).status == 201


def put(caller: AsgiClient, path: str, body: Any) -> Any:
    return caller.call("PUT", path, json=body)


def epochs() -> dict[str, int]:
    return dict(Project.objects.values_list("id", "authz_epoch"))


def test_whoami_says_who_administers_the_server(admin: AsgiClient, stranger: AsgiClient) -> None:
    assert admin.get("/management/v1/whoami").json()["is-instance-admin"] is True
    assert stranger.get("/management/v1/whoami").json()["is-instance-admin"] is False


def test_self_service_takes_from_the_token_what_the_body_leaves_out(client: AsgiClient) -> None:
    told = client.as_user("engine-1").post(USER, {"name": "Flights"}).json()
    assert (told["name"], told["email"], told["user-type"]) == ("Flights", "engine-1@example.org", "application")


def test_self_service_answers_201_then_409_then_200_with_update(client: AsgiClient) -> None:
    engine = client.as_user("engine-1")
    assert engine.post(USER, {"id": "oidc~engine-1"}).status == 201
    assert engine.post(USER, {}).error() == (409, "AlreadyExistsException")
    again = engine.post(USER, {"update-if-exists": True, "name": "new"})
    assert (again.status, again.json()["name"], again.json()["last-updated-with"]) == (200, "new", "update-endpoint")


def test_an_administrator_makes_somebody_known(admin: AsgiClient, client: AsgiClient) -> None:
    created = admin.post(USER, {**BOB, "email": "bob@example.org"})
    assert created.status == 201
    assert admin.post(USER, BOB).error() == (409, "AlreadyExistsException")
    updated = admin.post(USER, {**BOB, "name": "Robert", "update-if-exists": True})
    assert (updated.status, updated.json()["name"], updated.json()["email"]) == (200, "Robert", "bob@example.org")
    assert client.as_user("bob").get(path_of("bob")).json() == updated.json()
    actions = AuditEntry.objects.filter(object_id="oidc~bob").order_by("id").values_list("action", "actor")
    assert list(actions) == [("createUser", "oidc~admin"), ("updateUser", "oidc~admin")]
    assert OutboxEvent.objects.filter(object_id="oidc~bob").count() == 2


def test_only_an_administrator_makes_somebody_else_known(stranger: AsgiClient) -> None:
    assert stranger.post(USER, BOB).error() == (403, "ForbiddenException")
    assert not User.objects.filter(id="oidc~bob").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": "bob"}, "'<provider>~<subject>' is expected"),
        ({"id": "oidc~"}, "'<provider>~<subject>' is expected"),
        ({"id": "OIDC~bob"}, "'<provider>~<subject>' is expected"),
        ({"id": "role:x~bob"}, "'<provider>~<subject>' is expected"),
        ({"id": "system~lakewarden"}, "'<provider>~<subject>' is expected"),
        ({"id": "oidc~" + "x" * 256}, "'<provider>~<subject>' is expected"),
        ({"id": "oidc~a\nb"}, "'<provider>~<subject>' is expected"),
        ({"id": "oidc~a\u0000"}, "id: "),
        ({"name": None}, "name: it is required"),
        ({"user-type": None}, "user-type: it is required"),
        ({"name": "x" * 256}, "256 characters"),
        ({"name": "a\tb"}, "control character"),
        ({"email": "a\tb"}, "printable"),
        ({"email": "a@" + "b" * 255}, "255"),
        ({"user-type": "robot"}, "user-type"),
        ({"password": "secret"}, "unknown member 'password'"),
    ],
)
def test_a_bad_description_is_refused(admin: AsgiClient, changes: dict[str, Any], reason: str) -> None:
    answer = admin.post(USER, {**BOB, **changes})
    assert answer.status == 400
    assert reason in answer.message()
    assert User.objects.count() == 1


def test_users_are_listed_by_id_in_pages(admin: AsgiClient, client: AsgiClient) -> None:
    known(client, "carol", "alice", "bob")
    shown, query = [], "?pageSize=3"
    while query:
        page = admin.get(f"{USER}{query}").json()
        shown.append([user["id"] for user in page["users"]])
        query = f"?pageSize=3&pageToken={page['next-page-token']}" if "next-page-token" in page else ""
    assert shown == [["oidc~admin", "oidc~alice", "oidc~bob"], ["oidc~carol"]]


@pytest.mark.parametrize(("name", "found"), [("ALI", ["oidc~alice"]), ("%", []), ("_", []), ("", None), ("a%00", 400)])
def test_the_list_can_be_narrowed_by_name(admin: AsgiClient, client: AsgiClient, name: str, found: Any) -> None:
    known(client, "alice", "bob")
    answer = admin.get(f"{USER}?name={name if name.endswith('%00') else quote(name)}")
    if found == 400:
        assert answer.status == 400
    else:
        listed = [user["id"] for user in answer.json()["users"]]
        assert listed == (["oidc~admin", "oidc~alice", "oidc~bob"] if found is None else found)


def test_only_an_administrator_lists_users(stranger: AsgiClient) -> None:
    assert stranger.get(USER).error() == (403, "ForbiddenException")


def test_somebody_else_answers_like_a_missing_user(admin: AsgiClient, client: AsgiClient) -> None:
    known(client, "alice", "bob")
    alice = client.as_user("alice")
    assert alice.get(path_of("alice")).status == admin.get(path_of("alice")).status == 200
    for answer in (
        alice.get(path_of("bob")),
        put(alice, path_of("bob"), BOB | {"id": None}),
        alice.delete(path_of("bob")),
    ):
        assert answer.error() == (404, "NoSuchUserException")
    assert alice.get(path_of("bob")).message().replace("bob", "gone") == alice.get(path_of("gone")).message()


def test_nobody_but_an_administrator_rewrites_or_deletes_himself(admin: AsgiClient, client: AsgiClient) -> None:
    known(client, "alice")
    alice = client.as_user("alice")
    assert put(alice, path_of("alice"), {"name": "A", "user-type": "human"}).error() == (403, "ForbiddenException")
    assert alice.delete(path_of("alice")).error() == (403, "ForbiddenException")


@pytest.mark.parametrize("strange", ["%00", "no-user", "%ff", "a%2Fb", "..", "x" * 3000])
def test_an_id_that_cannot_be_one_is_missing(admin: AsgiClient, strange: str) -> None:
    assert admin.get(f"{USER}/{strange}").error() == (404, "NoSuchUserException")
    assert admin.get(f"{USER}/{strange}/roles").error() == (404, "NoSuchUserException")


def test_rewriting_replaces_everything(admin: AsgiClient, client: AsgiClient) -> None:
    known(client, "alice")
    told = put(admin, path_of("alice"), {"name": "Alicia", "user-type": "application"}).json()
    assert (told["name"], told.get("email"), told["user-type"]) == ("Alicia", None, "application")
    assert put(admin, path_of("alice"), {"name": "Alicia"}).status == 400
    put(admin, path_of("alice"), {"name": "Alicia", "user-type": "application"})
    assert AuditEntry.objects.filter(action="updateUser", object_id="oidc~alice").count() == 1


def test_deleting_forgets_the_person_and_all_rights_at_once(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, grant: Any
) -> None:
    known(client, "alice")
    grant("alice", "describe")
    role = admin.post("/management/v1/role", {"name": "analysts"}).json()["id"]
    admin.post(f"/management/v1/role/{role}/members", {"members": [{"user": "oidc~alice"}]})
    alice = client.as_user("alice")
    assert alice.get(f"/management/v1/warehouse/{warehouse.id}").status == 200
    before = epochs()
    assert admin.delete(path_of("alice")).status == 204
    assert alice.get(f"/management/v1/warehouse/{warehouse.id}").status == 404
    assert not Grant.objects.filter(principal_id="oidc~alice").exists()
    assert not Membership.objects.filter(member_id="oidc~alice").exists()
    assert epochs()[warehouse.project_id] > before[warehouse.project_id]
    user = User.objects.get(id="oidc~alice")
    assert (user.name, user.email) == ("Deleted User", None)
    for answer in (admin.get(path_of("alice")), admin.delete(path_of("alice")), alice.get(path_of("alice"))):
        assert answer.error() == (404, "NoSuchUserException")
    assert [each["id"] for each in admin.get(USER).json()["users"]] == ["oidc~admin"]
    assert AuditEntry.objects.filter(action="deleteUser", object_id="oidc~alice").count() == 1
    assert OutboxEvent.objects.filter(type="deleteUser", object_id="oidc~alice").count() == 1


def test_a_deleted_user_does_not_come_back_by_himself(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse
) -> None:
    known(client, "alice")
    admin.delete(path_of("alice"))
    alice = client.as_user("alice")
    assert alice.get("/catalog/v1/config?warehouse=lake").status == 404
    for body in ({}, {"update-if-exists": True}):
        answer = alice.post(USER, body)
        assert answer.error() == (403, "ForbiddenException")
        assert "only an administrator" in answer.message()
    assert alice.get("/management/v1/whoami").status == 403
    assert User.objects.values_list("name", "email").get(id="oidc~alice") == ("Deleted User", None)


def test_an_administrator_brings_a_deleted_user_back_without_rights(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, grant: Any
) -> None:
    known(client, "bob")
    grant("bob", "describe")
    admin.delete(path_of("bob"))
    grant("bob", "describe")  # whatever wrote that
    bob = client.as_user("bob")
    assert bob.get(f"/management/v1/warehouse/{warehouse.id}").status == 404
    assert admin.post(USER, BOB).status == 201
    assert bob.get(path_of("bob")).json()["name"] == "Bob"
    assert bob.get(f"/management/v1/warehouse/{warehouse.id}").status == 404


def test_roles_of_the_token_give_a_deleted_user_nothing(admin: AsgiClient, client: AsgiClient) -> None:
    body = {"name": "analysts", "provider-id": "oidc", "source-id": "analysts"}
    role = admin.post("/management/v1/role", body).json()["id"]
    Grant.objects.create(
        principal_id=f"role:{role}", object_type="project", object_id=Project.objects.get().id,
        privilege="describe", project_id=Project.objects.get().id, granted_by="test",
    )  # fmt: skip
    alice = client.as_user("alice+analysts")
    alice.post(USER, {})
    assert alice.get("/management/v1/project").status == 200
    admin.delete(path_of("alice"))
    assert alice.get("/management/v1/project").status == 404


def test_a_deleted_administrator_is_none_in_every_project(admin: AsgiClient, client: AsgiClient) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    admin.post(USER, BOB)
    Grant.objects.create(
        principal_id="oidc~bob", object_type="server", object_id="server", privilege="admin", granted_by="test"
    )
    bob = client.as_user("bob")
    assert bob.get("/management/v1/project", headers={"x-project-id": "blue"}).status == 200
    before = epochs()
    assert admin.delete(path_of("bob")).status == 204
    assert all(now > before[project] for project, now in epochs().items())
    assert bob.get("/management/v1/project", headers={"x-project-id": "blue"}).status == 404


def test_the_last_administrator_stays(admin: AsgiClient, client: AsgiClient) -> None:
    for name in ("bob", "ghost"):
        Grant.objects.create(
            principal_id=f"oidc~{name}", object_type="server", object_id="server", privilege="admin", granted_by="test"
        )
    assert admin.delete(path_of("admin")).error() == (409, "LastAdministratorException")
    known(client, "bob")
    assert admin.delete(path_of("admin")).status == 204
    assert admin.get(USER).status == 403


def test_of_two_administrators_who_delete_each_other_one_stays(
    admin: AsgiClient, client: AsgiClient, admin_context: RequestContext
) -> None:
    known(client, "bob")
    Grant.objects.create(
        principal_id="oidc~bob", object_type="server", object_id="server", privilege="admin", granted_by="test"
    )
    of_bob = replace(admin_context, caller=Caller(PrincipalId("oidc~bob")))
    # both are authorized before either deletes
    bob = access.user(admin_context, "oidc~bob", UserAction.DELETE)
    first = access.user(of_bob, "oidc~admin", UserAction.DELETE)
    user_removal.delete(bob)
    with pytest.raises(LastAdministrator):
        user_removal.delete(first)
    with pytest.raises(NoSuchUser):
        user_removal.delete(bob)


def test_first_calls_at_once_make_one_user(client: AsgiClient, warehouse: Warehouse) -> None:
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(client.as_user("alice").get, "/catalog/v1/config?warehouse=lake") for _ in range(8)]
    assert {call.result().status for call in calls} == {404}
    assert User.objects.filter(id="oidc~alice").count() == 1
    assert AuditEntry.objects.filter(action="createUser", object_id="oidc~alice").count() == 1


def test_only_id_name_email_and_type_are_stored() -> None:
    about_the_row = {"last_updated_with", "created_at", "updated_at", "deleted_at"}
    assert {field.name for field in User._meta.get_fields()} - about_the_row == {"id", "name", "email", "user_type"}


def test_roles_of_a_user_direct_and_transitive(admin: AsgiClient, client: AsgiClient) -> None:
    known(client, "alice")
    ids = {name: admin.post("/management/v1/role", {"name": name}).json()["id"] for name in ("inner", "outer")}
    for role, member in ((ids["inner"], {"user": "oidc~alice"}), (ids["outer"], {"role": ids["inner"]})):
        assert admin.post(f"/management/v1/role/{role}/members", {"members": [member]}).status == 200
    for caller in (admin, client.as_user("alice")):
        told = [caller.get(f"{path_of('alice')}/roles{rest}").json()["roles"] for rest in ("", "/transitive")]
        assert [[role["name"] for role in roles] for roles in told] == [["inner"], ["inner", "outer"]]
    paged = admin.get(f"{path_of('alice')}/roles/transitive?pageSize=1").json()
    assert [role["name"] for role in paged["roles"]] == ["inner"]
    assert "next-page-token" in paged


def test_roles_of_a_user_are_those_of_the_request_s_project(admin: AsgiClient, client: AsgiClient) -> None:
    known(client, "alice")
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    blue = {"x-project-id": "blue"}
    role = admin.post("/management/v1/role", {"name": "b"}, headers=blue).json()["id"]
    admin.post(f"/management/v1/role/{role}/members", {"members": [{"user": "oidc~alice"}]}, headers=blue)
    alice = client.as_user("alice")
    assert alice.get(f"{path_of('alice')}/roles").json() == {"roles": []}
    assert len(alice.get(f"{path_of('alice')}/roles", headers=blue).json()["roles"]) == 1
    # nothing tells whether there is such a project
    assert alice.get(f"{path_of('alice')}/roles", headers={"x-project-id": "gone"}).json() == {"roles": []}


def test_roles_of_somebody_of_another_project_answer_as_of_nobody(
    admin: AsgiClient, client: AsgiClient, grant: Any
) -> None:
    known(client, "alice", "bob")
    grant("alice", "describe")
    alice = client.as_user("alice")
    assert alice.get(f"{path_of('bob')}/roles").error() == (404, "NoSuchUserException")
    assert alice.get(f"{path_of('gone')}/roles").error() == (404, "NoSuchUserException")
    grant("bob", "describe")
    assert alice.get(f"{path_of('bob')}/roles").json() == {"roles": []}
    assert client.as_user("nobody").get(f"{path_of('bob')}/roles").error() == (404, "NoSuchProjectException")
