from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger.models import Grant, Membership
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.events.models import OutboxEvent
from tenants import access
from tenants.models import Project, Role
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.servers.asgi_client import Answer, AsgiClient

ROLE = "/management/v1/role"
GONE = "0197f1c2-0000-7000-8000-000000000000"
GROUP = {"provider-id": "oidc", "source-id": "analysts"}

Entitle = Callable[..., None]


@pytest.fixture
def entitle(admin: AsgiClient) -> Entitle:
    """`entitle("oidc~alice", "describe")` gives a principal a privilege on a project (the default one)."""

    def give(principal: str, privilege: str, project: str = DEFAULT_PROJECT_ID) -> None:
        entry = (PrincipalId(principal), Privilege(privilege))
        ledger.give(access.project_chain(project), [entry], granted_by=PrincipalId("oidc~admin"))
        projects.bump_epoch(project)

    return give


def make(caller: AsgiClient, name: str, **members: Any) -> str:
    answer = caller.post(ROLE, {"name": name, **{key.replace("_", "-"): value for key, value in members.items()}})
    assert answer.status == 201, answer.body
    return str(answer.json()["id"])


def rebind(caller: AsgiClient, role: str, body: Any = GROUP) -> Answer:
    return caller.call("PUT", f"{ROLE}/{role}/source-system", json=body)


def epoch() -> int:
    return Project.objects.get(id=DEFAULT_PROJECT_ID).authz_epoch


def test_a_new_role_is_of_our_own_provider_and_owned_by_its_maker(admin: AsgiClient) -> None:
    created = admin.post(ROLE, {"name": "Analysts", "description": "they read"})
    told = created.json()
    identifier = told["id"]
    assert created.status == 201
    assert UUID(told["source-id"]).version == 7
    assert told.pop("created-at")
    assert told == {
        "id": identifier,
        "ident": f"lakekeeper~{told['source-id']}",
        "provider-id": "lakekeeper",
        "source-id": told["source-id"],
        "name": "Analysts",
        "description": "they read",
        "project-id": DEFAULT_PROJECT_ID,
    }
    assert admin.get(f"{ROLE}/{identifier}").json() == created.json()
    owner = Grant.objects.get(object_type="role", object_id=identifier)
    assert (owner.principal_id, owner.privilege, owner.project_id) == ("oidc~admin", "ownership", DEFAULT_PROJECT_ID)
    assert AuditEntry.objects.get(action="createRole").details["name"] == "Analysts"
    assert OutboxEvent.objects.filter(type="createRole", object_id=identifier).count() == 1


def test_a_project_is_named_in_one_way_or_twice_the_same(admin: AsgiClient) -> None:
    for project in ("blue", "red"):
        admin.post("/management/v1/project", {"project-name": project, "project-id": project})
    body = {"name": "analysts", "project-id": "blue"}
    assert admin.post(ROLE, body).json()["project-id"] == "blue"
    same = admin.post(ROLE, body | {"name": "readers"}, headers={"x-project-id": "blue"})
    assert same.json()["project-id"] == "blue"
    assert len(admin.get(f"{ROLE}?projectId=blue").json()["roles"]) == 2
    search = {"search": "analysts", "project-id": "blue"}
    assert len(admin.post("/management/v1/search/role", search).json()["roles"]) == 1
    other = {"x-project-id": "red"}
    for answer in (
        admin.post(ROLE, body, headers=other),
        admin.get(f"{ROLE}?projectId=blue", headers=other),
        admin.post("/management/v1/search/role", search, headers=other),
    ):
        assert (answer.status, "'blue'" in answer.message(), "'red'" in answer.message()) == (400, True, True)


def test_a_role_of_another_project_is_found_unless_the_request_names_a_project(
    admin: AsgiClient, client: AsgiClient
) -> None:
    blue = {"x-project-id": "blue"}
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    made = admin.post(ROLE, {"name": "readers"}, headers=blue).json()
    path, default = f"{ROLE}/{made['id']}", {"x-project-id": DEFAULT_PROJECT_ID}
    for rest in ("", "/actions", "/members", "/member-of", "/metadata"):
        assert admin.get(path + rest).status == 200
        assert client.as_user("stranger").get(path + rest).error() == (404, "NoSuchRoleException")
        if rest != "/metadata":
            assert admin.get(path + rest, headers=default).error() == (404, "NoSuchRoleException")
    assert admin.get(path).json() == made


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "256 characters"),
        ({"name": "a\nb"}, "control character"),
        ({"name": "a\u0000"}, "name"),
        ({"name": "a", "description": "x" * 2001}, "description"),
        ({"name": "a", "provider-id": "oidc"}, "belong together"),
        ({"name": "a", "source-id": "s"}, "belong together"),
        ({"name": "a", "provider-id": "system", "source-id": "s"}, "reserved"),
        ({"name": "a", "provider-id": "O~", "source-id": "s"}, "provider-id 'O~'"),
        ({"name": "a", "provider-id": "o" * 65, "source-id": "s"}, "provider-id"),
        ({"name": "a", "provider-id": "oidc", "source-id": "s" * 256}, "source-id"),
        ({"name": "a", "provider-id": "oidc", "source-id": "a\tb"}, "source-id"),
        ({"name": "a", "members": []}, "unknown member 'members'"),
    ],
)
def test_a_bad_role_is_refused(admin: AsgiClient, body: dict[str, Any], reason: str) -> None:
    answer = admin.post(ROLE, body)
    assert answer.status == 400
    assert reason in answer.message()
    assert not Role.objects.exists()


def test_names_and_sources_are_taken_within_a_project_only(admin: AsgiClient) -> None:
    make(admin, "Analysts", **GROUP)
    for body in ({"name": "ANALYSTS"}, {"name": "other", **GROUP}):
        assert admin.post(ROLE, body).error() == (409, "AlreadyExistsException")
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    assert admin.post(ROLE, {"name": "Analysts", **GROUP}, headers={"x-project-id": "blue"}).status == 201


def test_a_role_creator_makes_roles_and_controls_his_own_only(
    admin: AsgiClient, client: AsgiClient, entitle: Entitle
) -> None:
    entitle("oidc~carol", "role_creator")
    carol = client.as_user("carol")
    others, own = make(admin, "others"), make(carol, "own")
    assert carol.get(f"{ROLE}/{others}").status == 200
    for answer in (
        carol.post(f"{ROLE}/{others}", {"name": "x"}),
        carol.delete(f"{ROLE}/{others}"),
        rebind(carol, others),
    ):
        assert answer.error() == (403, "ForbiddenException")
    assert carol.post(f"{ROLE}/{own}", {"name": "x"}).status == 200
    assert rebind(carol, own).status == 200
    assert carol.delete(f"{ROLE}/{own}").status == 204


def test_who_sees_the_project_only_makes_no_role(client: AsgiClient, entitle: Entitle) -> None:
    entitle("oidc~alice", "describe")
    alice = client.as_user("alice")
    assert alice.post(ROLE, {"name": "a"}).error() == (403, "ForbiddenException")
    assert alice.get(ROLE).json() == {"roles": []}


def test_a_hidden_role_answers_like_a_missing_one(admin: AsgiClient, stranger: AsgiClient) -> None:
    role = make(admin, "analysts")
    for rest in ("", "/metadata", "/members", "/member-of"):
        hidden, missing = stranger.get(f"{ROLE}/{role}{rest}"), stranger.get(f"{ROLE}/{GONE}{rest}")
        assert hidden.error() == missing.error() == (404, "NoSuchRoleException")
        assert hidden.message().replace(role, GONE) == missing.message()
    assert stranger.get(ROLE).error() == (404, "NoSuchProjectException")


@pytest.mark.parametrize("strange", ["no-uuid", "%00", "%ff", "..%2F.."])
def test_an_id_that_cannot_be_one_is_missing(admin: AsgiClient, strange: str) -> None:
    assert admin.get(f"{ROLE}/{strange}").error() == (404, "NoSuchRoleException")


def test_a_role_of_another_project_is_missing_but_its_metadata_may_be_read(admin: AsgiClient) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    role, blue = make(admin, "analysts", **GROUP), {"x-project-id": "blue"}
    assert admin.get(f"{ROLE}/{role}", headers=blue).error() == (404, "NoSuchRoleException")
    assert admin.delete(f"{ROLE}/{role}", headers=blue).status == 404
    assert admin.get(f"{ROLE}/{role}/metadata", headers=blue).json() == {
        "id": role,
        "ident": "oidc~analysts",
        **GROUP,
        "name": "analysts",
        "project-id": DEFAULT_PROJECT_ID,
    }


def test_roles_are_listed_by_name_in_pages(admin: AsgiClient) -> None:
    for name in ("beta", "Alpha", "gamma"):
        make(admin, name)
    first = admin.get(f"{ROLE}?pageSize=2").json()
    second = admin.get(f"{ROLE}?pageSize=2&pageToken={first['next-page-token']}").json()
    assert [[role["name"] for role in page["roles"]] for page in (first, second)] == [["Alpha", "beta"], ["gamma"]]
    assert "next-page-token" not in second


def test_roles_are_listed_by_filter(admin: AsgiClient) -> None:
    ids = {
        "Alpha": make(admin, "Alpha", **GROUP),
        "beta_1": make(admin, "beta_1", provider_id="oidc", source_id="b"),
        "gamma": make(admin, "gamma"),
    }

    def names(query: str) -> list[str]:
        return [role["name"] for role in admin.get(f"{ROLE}?{query}").json()["roles"]]

    assert names(f"roleIds={ids['gamma']}&roleIds={ids['Alpha']}") == ["Alpha", "gamma"]
    assert names("providerIds=oidc") == ["Alpha", "beta_1"]
    assert names("providerIds=oidc&sourceIds=b") == ["beta_1"]
    assert names("name=ALPH") == ["Alpha"]
    assert names("name=_") == ["beta_1"]
    for query in ("roleIds=x", "sourceIds=%00", "name=%00", "pageToken=x", "pageSize=0"):
        assert admin.get(f"{ROLE}?{query}").error() == (400, "BadRequestException")


def test_update_replaces_name_and_description(admin: AsgiClient) -> None:
    role = make(admin, "a", description="text")
    make(admin, "taken")
    told = admin.post(f"{ROLE}/{role}", {"name": "A"}).json()
    assert (told["name"], "description" in told, "updated-at" in told) == ("A", False, True)
    assert admin.post(f"{ROLE}/{role}", {"name": "TAKEN"}).error() == (409, "AlreadyExistsException")
    assert admin.post(f"{ROLE}/{role}", {"name": "a\t"}).status == 400
    admin.post(f"{ROLE}/{role}", {"name": "A"})
    assert AuditEntry.objects.filter(action="updateRole").count() == 1


def test_deleting_a_role_takes_all_that_it_holds_along(admin: AsgiClient, client: AsgiClient, entitle: Entitle) -> None:
    client.as_user("alice").post("/management/v1/user", {})
    role, inner, outer = make(admin, "role"), make(admin, "inner"), make(admin, "outer")
    entitle(f"role:{role}", "describe")
    admin.post(f"{ROLE}/{role}/members", {"members": [{"user": "oidc~alice"}, {"role": inner}]})
    admin.post(f"{ROLE}/{outer}/members", {"members": [{"role": role}]})
    alice = client.as_user("alice")
    assert alice.get("/management/v1/project").status == 200
    before = epoch()
    assert admin.delete(f"{ROLE}/{role}").status == 204
    assert epoch() > before
    assert alice.get("/management/v1/project").status == 404
    assert not Grant.objects.filter(object_id=role).exists()
    assert not Grant.objects.filter(principal_id=f"role:{role}").exists()
    assert not Membership.objects.exists()
    assert admin.delete(f"{ROLE}/{role}").error() == (404, "NoSuchRoleException")
    assert OutboxEvent.objects.filter(type="deleteRole", object_id=role).count() == 1


def test_a_role_of_a_group_gives_its_rights_to_whose_token_names_it(
    admin: AsgiClient, client: AsgiClient, entitle: Entitle
) -> None:
    role = make(admin, "analysts", **GROUP)
    entitle(f"role:{role}", "describe")
    assert client.as_user("alice").get("/management/v1/project").status == 404
    assert client.as_user("alice+engineers").get("/management/v1/project").status == 404
    assert client.as_user("alice+engineers,analysts").get("/management/v1/project").status == 200
    assert client.as_user("alice+analysts").get("/management/v1/project-list").json()["projects"]


def test_rebinding_counts_at_once(admin: AsgiClient, client: AsgiClient, entitle: Entitle) -> None:
    role = make(admin, "analysts", **GROUP)
    entitle(f"role:{role}", "describe")
    analyst, engineer = client.as_user("alice+analysts"), client.as_user("bob+engineers")
    assert [each.get("/management/v1/project").status for each in (analyst, engineer)] == [200, 404]
    told = rebind(admin, role, {"provider-id": "oidc", "source-id": "engineers"})
    assert (told.status, told.json()["ident"]) == (200, "oidc~engineers")
    assert [each.get("/management/v1/project").status for each in (analyst, engineer)] == [404, 200]
    before = epoch()
    rebind(admin, role, {"provider-id": "oidc", "source-id": "engineers"})
    assert epoch() == before
    assert AuditEntry.objects.filter(action="updateRoleSource").count() == 1


def test_a_new_role_of_a_group_counts_at_once(admin: AsgiClient, client: AsgiClient, entitle: Entitle) -> None:
    outer = make(admin, "outer")
    entitle(f"role:{outer}", "describe")
    analyst = client.as_user("alice+analysts")
    assert analyst.get("/management/v1/project").status == 404
    role = make(admin, "analysts", **GROUP)
    admin.post(f"{ROLE}/{outer}/members", {"members": [{"role": role}]})
    assert analyst.get("/management/v1/project").status == 200


def test_a_taken_role_is_told_by_what_of_it_is_taken(admin: AsgiClient) -> None:
    admin.post(ROLE, {"name": "a", **GROUP})
    assert admin.post(ROLE, {"name": "A"}).message() == "A role with the name 'A' exists already in this project"
    same_group = admin.post(ROLE, {"name": "b", **GROUP})
    assert f"the source {GROUP['provider-id']}~{GROUP['source-id']} exists" in same_group.message()


def test_rebinding_to_a_taken_or_bad_source_is_refused(admin: AsgiClient) -> None:
    make(admin, "analysts", **GROUP)
    other = make(admin, "other")
    assert rebind(admin, other).error() == (409, "AlreadyExistsException")
    assert rebind(admin, other, {"provider-id": "system", "source-id": "s"}).status == 400
    assert rebind(admin, other, {"provider-id": "oidc"}).status == 400
