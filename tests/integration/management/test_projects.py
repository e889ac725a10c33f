from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lakewarden import config
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.authz.ledger.models import Membership
from lakewarden.events.models import OutboxEvent
from lakewarden.ids import new_id
from tenants.models import Project, Role, Warehouse
from tests.servers.asgi_client import Answer, AsgiClient

NIL = "00000000-0000-0000-0000-000000000000"


def test_create_project_with_an_id_and_find_it_by_header(admin: AsgiClient) -> None:
    created = admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue_1"})
    assert (created.status, created.json()) == (201, {"project-id": "blue_1"})
    for header in ("x-project-id", "x-project-ident"):
        found = admin.get("/management/v1/project", headers={header: "blue_1"})
        assert (found.status, found.json()) == (200, {"project-id": "blue_1", "project-name": "Blue"})


def test_without_header_it_is_the_default_project(admin: AsgiClient) -> None:
    assert admin.get("/management/v1/project").json()["project-id"] == NIL


def test_create_project_leaves_an_audit_row_and_an_event(admin: AsgiClient) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue"}, headers={"x-request-id": "r-1"})
    entry = AuditEntry.objects.get(action="createProject")
    assert (entry.actor, entry.request_id) == ("oidc~admin", "r-1")
    assert OutboxEvent.objects.filter(type="createProject", project_id=entry.project_id).count() == 1


@pytest.mark.parametrize("name", ["BLUE", "blue"])
def test_a_name_that_differs_in_case_only_is_taken(admin: AsgiClient, name: str) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue"})
    assert admin.post("/management/v1/project", {"project-name": name}).error() == (409, "AlreadyExistsException")


@pytest.mark.parametrize(
    "body",
    [
        {"project-name": ""},
        {"project-name": "x" * 256},
        {"project-name": "a\u0000b"},
        {"project-name": "a\nb"},
        {"project-name": ["a"]},
        {"project-name": "a", "project-id": "a b"},
        {"project-name": "a", "project-id": "x" * 129},
        {"project-name": "a", "project-id": "a\u0000"},
    ],
)
def test_create_project_with_a_bad_member_is_refused(admin: AsgiClient, body: object) -> None:
    assert admin.post("/management/v1/project", body).status == 400


def test_create_project_needs_an_operator(stranger: AsgiClient) -> None:
    refused = stranger.post("/management/v1/project", {"project-name": "a"})
    assert refused.error() == (403, "ForbiddenException")
    assert refused.message().endswith("create_project on the server needs the privilege admin or operator")


def test_create_project_before_bootstrap_is_forbidden(client: AsgiClient) -> None:
    assert client.as_user("alice").post("/management/v1/project", {"project-name": "a"}).status == 403


def test_a_hidden_project_answers_like_a_missing_one(admin: AsgiClient, stranger: AsgiClient) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    hidden = stranger.get("/management/v1/project", headers={"x-project-id": "blue"})
    missing = stranger.get("/management/v1/project", headers={"x-project-id": "gone"})
    assert hidden.error() == missing.error() == (404, "NoSuchProjectException")
    assert hidden.message().replace("blue", "gone") == missing.message()


@pytest.mark.parametrize("strange", ["a b", "%00", "x" * 200, "'--"])
def test_a_project_id_that_cannot_be_one_is_missing(admin: AsgiClient, strange: str) -> None:
    assert admin.get("/management/v1/project", headers={"x-project-id": strange}).status == 404
    assert admin.get(f"/management/v1/warehouse?projectId={strange.replace(' ', '+')}").status == 404


def test_project_list_shows_only_what_the_caller_may_see_by_name(admin: AsgiClient, stranger: AsgiClient) -> None:
    for name in ("beta", "Alpha", "gamma"):
        admin.post("/management/v1/project", {"project-name": name})
    names = [project["project-name"] for project in admin.get("/management/v1/project-list").json()["projects"]]
    assert names == ["Alpha", "beta", "Default Project", "gamma"]
    assert stranger.get("/management/v1/project-list").json() == {"projects": []}


BLUE = {"x-project-id": "blue"}


@pytest.fixture
def blue(admin: AsgiClient) -> str:
    """The id of a project that the administrator made."""
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    return "blue"


def rename(caller: AsgiClient, name: Any, path: str = "project/rename", **headers: str) -> Answer:
    return caller.post(f"/management/v1/{path}", {"new-name": name}, headers={**BLUE, **headers})


@pytest.mark.parametrize("path", ["project/rename", "project/blue/rename"])
def test_a_renamed_project_keeps_its_id(admin: AsgiClient, blue: str, path: str) -> None:
    answer = rename(admin, "Sea", path)
    assert (answer.status, answer.json()) == (200, {"project-id": "blue", "project-name": "Sea"})
    assert admin.get("/management/v1/project", headers=BLUE).json() == answer.json()
    assert AuditEntry.objects.get(action="renameProject").details == {"name": "Sea", "before": "Blue"}
    assert OutboxEvent.objects.filter(type="renameProject", project_id="blue").count() == 1


def test_renaming_to_its_own_name_records_nothing_and_to_another_case_does(admin: AsgiClient, blue: str) -> None:
    assert rename(admin, "Blue").status == 200
    assert not AuditEntry.objects.filter(action="renameProject").exists()
    assert rename(admin, "BLUE").json()["project-name"] == "BLUE"


def test_renaming_to_a_taken_name_is_refused(admin: AsgiClient, blue: str) -> None:
    assert rename(admin, "default project").error() == (409, "AlreadyExistsException")


@pytest.mark.parametrize("name", ["", "x" * 256, "a\u0000", "a\tb", None, ["a"]])
def test_renaming_to_a_bad_name_is_refused(admin: AsgiClient, blue: str, name: Any) -> None:
    assert rename(admin, name).status == 400


def test_only_who_administers_a_project_renames_and_deletes_it(
    admin: AsgiClient, stranger: AsgiClient, client: AsgiClient, blue: str
) -> None:
    GrantRow.objects.create(
        principal_id="oidc~reader",
        object_type="project",
        object_id=blue,
        privilege="describe",
        project_id=blue,
        granted_by="x",
    )
    reader = client.as_user("reader")
    assert rename(reader, "Sea").error() == (403, "ForbiddenException")
    assert reader.delete("/management/v1/project", headers=BLUE).error() == (403, "ForbiddenException")
    assert rename(stranger, "Sea").error() == (404, "NoSuchProjectException")
    assert stranger.delete("/management/v1/project", headers=BLUE).error() == (404, "NoSuchProjectException")


@pytest.mark.parametrize("path", ["project", "project/blue"])
def test_a_deleted_project_is_gone_with_its_roles_and_grants(admin: AsgiClient, blue: str, path: str) -> None:
    role = Role.objects.create(id=new_id(), project_id=blue, name="r", name_key="r", source_id="r")
    Membership.objects.create(role_id=role.principal, member_id="oidc~a", project_id=blue, added_by="x")
    kept = GrantRow.objects.exclude(project_id=blue).count()
    assert admin.delete(f"/management/v1/{path}", headers=BLUE).status == 204
    assert admin.get("/management/v1/project/blue").error() == (404, "NoSuchProjectException")
    assert admin.delete("/management/v1/project", headers=BLUE).status == 404
    assert not Role.objects.exists()
    assert not Membership.objects.exists()
    assert not GrantRow.objects.filter(project_id=blue).exists()
    assert GrantRow.objects.count() == kept
    assert OutboxEvent.objects.filter(type="deleteProject", project_id=blue).count() == 1


def test_a_project_with_warehouses_is_not_deleted(admin: AsgiClient, warehouse: Warehouse) -> None:
    assert admin.delete("/management/v1/project").error() == (409, "ProjectNotEmptyException")
    Warehouse.objects.all().delete()
    assert admin.delete("/management/v1/project").status == 204
    assert admin.get("/management/v1/project").error() == (404, "NoSuchProjectException")


def test_a_right_in_a_deleted_project_is_none_in_its_successor(
    admin: AsgiClient, client: AsgiClient, blue: str
) -> None:
    GrantRow.objects.create(
        principal_id="oidc~bob",
        object_type="project",
        object_id=blue,
        privilege="project_admin",
        project_id=blue,
        granted_by="x",
    )
    bob = client.as_user("bob")
    assert bob.get("/management/v1/project", headers=BLUE).status == 200
    first = Project.objects.get(id=blue).authz_epoch
    admin.delete("/management/v1/project", headers=BLUE)
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": blue})
    assert Project.objects.get(id=blue).authz_epoch > first
    assert bob.get("/management/v1/project", headers=BLUE).error() == (404, "NoSuchProjectException")


def test_a_project_that_is_deleted_while_a_warehouse_is_made_is_either_empty_or_there(
    admin: AsgiClient, blue: str, tmp_path: Path
) -> None:
    body = {"warehouse-name": "lake", "storage-profile": {"type": "local", "base-path": str(tmp_path / "lake")}}
    with ThreadPoolExecutor(2) as threads:
        made = threads.submit(admin.post, "/management/v1/warehouse", body, headers=BLUE)
        gone = threads.submit(admin.delete, "/management/v1/project", headers=BLUE)
        statuses = (made.result().status, gone.result().status)
    assert statuses in {(201, 409), (404, 204)}


def test_the_default_project_has_paths_of_its_own(admin: AsgiClient, blue: str) -> None:
    assert admin.get("/management/v1/default-project", headers=BLUE).json()["project-id"] == NIL
    renamed = rename(admin, "Main", "default-project/rename")
    assert renamed.json() == {"project-id": NIL, "project-name": "Main"}
    assert admin.delete("/management/v1/default-project", headers=BLUE).status == 204
    assert admin.get("/management/v1/default-project").error() == (404, "NoSuchProjectException")
    made = admin.post("/management/v1/project", {"project-name": "Main", "project-id": NIL})
    assert made.status == 201
    assert admin.get("/management/v1/project").json() == {**made.json(), "project-name": "Main"}


@pytest.mark.parametrize("identifier", ["%00", "a%20b", "x" * 200, "%F0%9F%A6%86"])
def test_an_id_in_the_path_that_cannot_be_one_is_missing(admin: AsgiClient, identifier: str) -> None:
    assert admin.get(f"/management/v1/project/{identifier}").error() == (404, "NoSuchProjectException")
    assert admin.delete(f"/management/v1/project/{identifier}").error() == (404, "NoSuchProjectException")
    assert rename(admin, "a", f"project/{identifier}/rename").error() == (404, "NoSuchProjectException")


@pytest.fixture
def without_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration of a server that has no default project."""
    settings = config.current()
    server = settings.server.model_copy(update={"enable_default_project": False})
    changed = settings.model_copy(update={"server": server})
    monkeypatch.setattr(config, "current", lambda: changed)


Call = Callable[[AsgiClient], Answer]


@pytest.mark.parametrize(
    "call",
    [
        lambda caller: caller.get("/management/v1/project"),
        lambda caller: caller.delete("/management/v1/default-project"),
        lambda caller: caller.get("/management/v1/warehouse"),
        lambda caller: caller.post("/management/v1/warehouse", {"warehouse-name": "a", "storage-profile": {}}),
        lambda caller: caller.get("/catalog/v1/config?warehouse=lake"),
        lambda caller: caller.get("/lakehouse/w/lake/v1/config"),
    ],
)
def test_without_a_default_project_a_request_must_name_one(
    without_default: None, admin: AsgiClient, call: Call
) -> None:
    answer = call(admin)
    assert answer.error() == (400, "ProjectIdMissingException")
    assert "send x-project-id" in answer.message()


def test_without_a_default_project_bootstrap_makes_none(without_default: None, admin: AsgiClient) -> None:
    assert not Project.objects.exists()
    assert "default-project-id" not in admin.get("/management/v1/info").json()
    assert admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"}).status == 201
    assert admin.get("/management/v1/project", headers=BLUE).status == 200
    assert admin.get("/management/v1/warehouse?projectId=blue").json() == {"warehouses": []}
