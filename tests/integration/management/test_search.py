from typing import Any

import pytest

from tenants.models import Role, User
from tenants.models.project import DEFAULT_PROJECT_ID
from tests.servers.asgi_client import AsgiClient

USERS, ROLES = "/management/v1/search/user", "/management/v1/search/role"


def person(identifier: str, name: str) -> None:
    User.objects.create(
        id=f"oidc~{identifier}", name=name, email=f"{identifier}@example.org", user_type="human",
        last_updated_with="create-endpoint",
    )  # fmt: skip


def names(caller: AsgiClient, text: str) -> list[str]:
    return [user["name"] for user in caller.post(USERS, {"search": text}).json()["users"]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Miller", ["Anna Miller", "Anna Mill", "Jörg Müller"]),
        ("miler anna", ["Anna Miller", "Anna Mill", "Jörg Müller"]),
        ("an", ["Anna Mill", "Anna Miller"]),
        ("MÜLLER", ["Jörg Müller", "Mülltonne", "Anna Miller"]),
        ("müll", ["Mülltonne", "Jörg Müller"]),
        ("иван", ["Иван Петров"]),
        ("李小龙", ["李小龙"]),
        ("100%", ["100% Pure"]),
        ("%", ["100% Pure"]),
        ("_", []),
        ("\\", []),
        ("xyz", []),
        ("oidc~jm", ["Jörg Müller"]),
        ("JM@example.org", ["Jörg Müller"]),
    ],
)
def test_an_administrator_finds_people_by_parts_of_their_names(admin: AsgiClient, text: str, found: list[str]) -> None:
    people = {"am": "Anna Miller", "ai": "Anna Mill", "jm": "Jörg Müller", "mt": "Mülltonne", "ip": "Иван Петров"}
    for identifier, name in {**people, "lx": "李小龙", "pp": "100% Pure"}.items():
        person(identifier, name)
    assert names(admin, text) == found


def test_the_best_ten_are_told(admin: AsgiClient) -> None:
    for number in range(30):
        person(f"p{number}", f"Person number {number}")
    person("exact", "Person")
    assert len(names(admin, "person")) == 10
    assert names(admin, "person")[0] == "Person"
    assert len(names(admin, "")) == 10


@pytest.mark.parametrize("body", [{}, {"search": "x" * 65}, {"search": "a\u0000"}, {"search": []}, {"find": "a"}])
def test_a_bad_search_is_refused(admin: AsgiClient, body: Any) -> None:
    for path in (USERS, ROLES):
        assert admin.post(path, body).error() == (400, "BadRequestException")


def test_a_deleted_user_is_not_found(admin: AsgiClient) -> None:
    person("am", "Anna Miller")
    admin.delete("/management/v1/user/oidc~am")
    for text in ("anna", "oidc~am", "am@example.org", "deleted"):
        assert names(admin, text) == []


def test_others_find_the_people_of_their_project_only(admin: AsgiClient, client: AsgiClient, grant: Any) -> None:
    for identifier, name in (("a1", "Anna One"), ("a2", "Anna Two"), ("a3", "Anna Three")):
        person(identifier, name)
    role = admin.post("/management/v1/role", {"name": "r"}).json()["id"]
    admin.post(f"/management/v1/role/{role}/members", {"members": [{"user": "oidc~a2"}]})
    grant("a1", "select")
    grant("alice", "select")
    alice = client.as_user("alice")
    assert sorted(names(alice, "anna")) == ["Anna One", "Anna Two"]
    by_id = alice.post(USERS, {"search": "oidc~a3"}).json()["users"]
    assert by_id == [{"id": "oidc~a3", "name": "Anna Three", "user-type": "human"}]
    by_mail = alice.post(USERS, {"search": "a3@EXAMPLE.org"}).json()["users"]
    assert by_mail == [{**by_id[0], "email": "a3@example.org"}]
    assert alice.post(USERS, {"search": "oidc~a1"}).json()["users"][0]["email"] == "a1@example.org"


def test_nobody_searches_a_project_that_he_does_not_see(admin: AsgiClient, client: AsgiClient, grant: Any) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    grant("alice", "select")
    alice = client.as_user("alice")
    for path in (USERS, ROLES):
        hidden = alice.post(path, {"search": "a"}, headers={"x-project-id": "blue"})
        missing = alice.post(path, {"search": "a"}, headers={"x-project-id": "gone"})
        assert hidden.error() == missing.error() == (404, "NoSuchProjectException")
        assert hidden.message().replace("blue", "gone") == missing.message()


def test_roles_are_found_within_the_project(admin: AsgiClient, client: AsgiClient, grant: Any) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    for project in (DEFAULT_PROJECT_ID, "blue"):
        for name in ("Data Analysts", "analysts", "Engineers"):
            admin.post("/management/v1/role", {"name": name}, headers={"x-project-id": project})
    grant("alice", "select")
    for caller in (admin, client.as_user("alice")):
        found = caller.post(ROLES, {"search": "ANALYST"}).json()["roles"]
        assert [(role["name"], role["project-id"]) for role in found] == [
            ("analysts", DEFAULT_PROJECT_ID),
            ("Data Analysts", DEFAULT_PROJECT_ID),
        ]
    engineers = {role.project_id: str(role.id) for role in Role.objects.filter(name="Engineers")}
    by_id = {project: admin.post(ROLES, {"search": each}).json()["roles"] for project, each in engineers.items()}
    assert [role["name"] for role in by_id[DEFAULT_PROJECT_ID]] == ["Engineers"]
    assert by_id["blue"] == []
