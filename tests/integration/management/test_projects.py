import pytest

from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tests.servers.asgi_client import AsgiClient

NIL = "00000000-0000-0000-0000-000000000000"


def test_create_project_with_an_id_and_find_it_by_header(admin: AsgiClient) -> None:
    created = admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue_1"})
    assert (created.status, created.json()) == (201, {"project-id": "blue_1", "project-name": "Blue"})
    for header in ("x-project-id", "x-project-ident"):
        found = admin.get("/management/v1/project", headers={header: "blue_1"})
        assert (found.status, found.json()) == (200, created.json())


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
    assert stranger.post("/management/v1/project", {"project-name": "a"}).error() == (403, "ForbiddenException")


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
