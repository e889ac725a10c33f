from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest

from lakewarden import config
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger.models import Membership
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

People = Callable[..., None]


@pytest.fixture
def people(admin: AsgiClient, client: AsgiClient) -> People:
    """`people("alice")` makes her known."""

    def register(*names: str) -> None:
        for name in names:
            client.as_user(name).post("/management/v1/user", {})

    return register


def make(caller: AsgiClient, *names: str) -> list[str]:
    return [str(caller.post(ROLE, {"name": name}).json()["id"]) for name in names]


def user(name: str) -> dict[str, str]:
    return {"type": "user", "id": f"oidc~{name}"}


def add(caller: AsgiClient, role: str, *members: Any) -> Answer:
    return caller.post(f"{ROLE}/{role}/members", {"members": list(members)})


def take_out(caller: AsgiClient, role: str, kind: str, member: str) -> Answer:
    return caller.delete(f"{ROLE}/{role}/members/{kind}/{quote(member, safe='')}")


def members(caller: AsgiClient, role: str, rest: str = "") -> list[str]:
    return [member["id"] for member in caller.get(f"{ROLE}/{role}/members{rest}").json()["members"]]


def epoch() -> int:
    return Project.objects.get(id=DEFAULT_PROJECT_ID).authz_epoch


def give(principal: str, privilege: str) -> None:
    entry = (PrincipalId(principal), Privilege(privilege))
    ledger.give(access.project_chain(DEFAULT_PROJECT_ID), [entry], granted_by=PrincipalId("oidc~admin"))
    projects.bump_epoch(DEFAULT_PROJECT_ID)


def test_members_are_added_in_both_forms_and_listed_by_id(admin: AsgiClient, people: People) -> None:
    people("alice", "bob")
    outer, inner, other = make(admin, "outer", "inner", "other")
    before = epoch()
    added = add(
        admin, outer, user("bob"), {"user": "oidc~alice"}, {"type": "role", "id": inner}, {"role": other.upper()}
    )
    assert added.status == 200
    assert added.json() == {
        "members": [
            user("bob"),
            user("alice"),
            {"type": "role", "id": inner},
            {"type": "role", "id": other},
        ]
    }
    assert epoch() == before + 1
    listed = admin.get(f"{ROLE}/{outer}/members").json()["members"]
    idents = [admin.get(f"{ROLE}/{role}").json()["ident"] for role in (inner, other)]
    assert [{name: each[name] for name in each if name != "email"} for each in listed] == [
        {"type": "user", "id": "oidc~alice", "name": "Alice", "user-type": "human"},
        {"type": "user", "id": "oidc~bob", "name": "Bob", "user-type": "human"},
        {"type": "role", "id": inner, "name": "inner", "ident": idents[0]},
        {"type": "role", "id": other, "name": "other", "ident": idents[1]},
    ]
    assert members(admin, outer, "?type=user") == ["oidc~alice", "oidc~bob"]
    assert members(admin, outer, "?type=role") == [inner, other]
    assert admin.get(f"{ROLE}/{outer}/members?type=table").error() == (400, "BadRequestException")
    entry = AuditEntry.objects.get(action="updateRoleMembers")
    assert (entry.object_id, len(entry.details["added"]), entry.details["removed"]) == (outer, 4, [])
    assert OutboxEvent.objects.filter(type="updateRoleMembers", object_id=outer).count() == 1


def test_members_come_in_pages(admin: AsgiClient, people: People) -> None:
    people("alice", "bob", "carol")
    outer, role = make(admin, "outer", "role")
    add(admin, role, user("alice"), user("bob"), user("carol"))
    add(admin, outer, {"role": role})
    for rest, everybody in (
        ("", ["oidc~alice", "oidc~bob", "oidc~carol"]),
        ("/transitive", ["oidc~alice", "oidc~bob", "oidc~carol"]),
    ):
        target = f"{ROLE}/{role if not rest else outer}/members{rest}"
        first = admin.get(f"{target}?pageSize=2&type=user").json()
        second = admin.get(f"{target}?pageSize=2&type=user&pageToken={first['next-page-token']}").json()
        assert [each["id"] for page in (first, second) for each in page["members"]] == everybody
        assert "next-page-token" not in second


def test_adding_and_removing_again_changes_nothing(admin: AsgiClient, people: People) -> None:
    people("alice")
    (role,) = make(admin, "role")
    before = epoch()
    for _ in range(2):
        assert add(admin, role, user("alice"), user("alice")).status == 200
    for _ in range(2):
        assert take_out(admin, role, "user", "oidc~alice").status == 204
    assert members(admin, role) == []
    assert epoch() == before + 2
    assert AuditEntry.objects.filter(action="updateRoleMembers").count() == 2


def test_membership_counts_at_once_through_several_roles(admin: AsgiClient, client: AsgiClient, people: People) -> None:
    people("alice")
    outer, middle, inner = make(admin, "outer", "middle", "inner")
    give(f"role:{outer}", "describe")
    alice = client.as_user("alice")
    add(admin, outer, {"role": middle})
    add(admin, middle, {"role": inner})
    assert alice.get("/management/v1/project").status == 404
    add(admin, inner, user("alice"))
    assert alice.get("/management/v1/project").status == 200
    assert members(admin, outer, "/transitive") == ["oidc~alice", middle, inner]
    above = admin.get(f"{ROLE}/{inner}/member-of").json()["roles"]
    assert [role["name"] for role in above] == ["middle"]
    above = admin.get(f"{ROLE}/{inner}/member-of/transitive").json()["roles"]
    assert [role["name"] for role in above] == ["middle", "outer"]
    take_out(admin, middle, "role", inner)
    assert alice.get("/management/v1/project").status == 404


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([{"user": "alice"}], "'<provider>~<subject>'"),
        ([{"user": 1}], "members[0]"),
        ([{"role": "no-uuid"}], "members[0]: 'no-uuid' is not the id of a role"),
        ([{"type": "group", "id": "x"}], "members[0]"),
        ([{"type": "user"}], "members[0]"),
        ([{"type": "user", "id": "oidc~a", "more": 1}], "members[0]"),
        ([{"user": "oidc~a", "role": GONE}], "members[0]"),
        ([{"user": "oidc~a\u0000"}], "'<provider>~<subject>'"),
        (["oidc~alice"], "members[0]"),
        ("all", "members"),
        ([user(str(number)) for number in range(1001)], "members"),
    ],
)
def test_a_bad_batch_is_refused(admin: AsgiClient, given: Any, reason: str) -> None:
    (role,) = make(admin, "role")
    answer = admin.post(f"{ROLE}/{role}/members", {"members": given})
    assert answer.status == 400
    assert reason in answer.message()


def test_a_batch_with_somebody_unknown_or_deleted_is_refused_as_a_whole(admin: AsgiClient, people: People) -> None:
    people("alice", "bob")
    (role,) = make(admin, "role")
    admin.delete("/management/v1/user/oidc~bob")
    assert add(admin, role, user("alice"), user("ghost")).error() == (404, "NoSuchUserException")
    assert add(admin, role, user("alice"), {"role": GONE}).error() == (404, "NoSuchRoleException")
    deleted = add(admin, role, user("alice"), user("bob"))
    assert deleted.error() == (400, "BadRequestException")
    assert "was deleted" in deleted.message()
    assert not Membership.objects.exists()


def test_a_role_of_another_project_is_missing(admin: AsgiClient) -> None:
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    (role,) = make(admin, "role")
    foreign = admin.post(ROLE, {"name": "role"}, headers={"x-project-id": "blue"}).json()["id"]
    answer = add(admin, role, {"role": foreign})
    assert answer.error() == (404, "NoSuchRoleException")
    assert answer.message().replace(foreign, GONE) == add(admin, role, {"role": GONE}).message()
    assert add(admin, foreign, {"role": role}).error() == (404, "NoSuchRoleException")
    assert take_out(admin, foreign, "role", role).status == 204


def test_a_cycle_is_refused(admin: AsgiClient) -> None:
    a, b, c = make(admin, "a", "b", "c")
    assert add(admin, a, {"role": a}).error() == (409, "RoleMembershipCycleException")
    add(admin, a, {"role": b})
    add(admin, b, {"role": c})
    for inner in (b, c):
        assert add(admin, inner, {"role": a}).error() == (409, "RoleMembershipCycleException")
    assert Membership.objects.count() == 2


def test_nesting_is_limited_from_both_ends(admin: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = config.current().model_copy(update={"roles": config.RolesConfig(max_nesting_depth=3)})
    monkeypatch.setattr(config, "current", lambda: limited)
    a, b, c, d = make(admin, "a", "b", "c", "d")
    assert add(admin, a, {"role": b}).status == 200
    assert add(admin, c, {"role": d}).status == 200
    answer = add(admin, b, {"role": c})
    assert answer.error() == (409, "RoleMembershipDepthExceededException")
    assert "4 roles" in answer.message()
    assert "at most 3" in answer.message()
    assert add(admin, a, {"role": c}).status == 200
    assert add(admin, d, {"role": b}).status == 409


def test_ten_roles_may_be_nested_by_default(admin: AsgiClient) -> None:
    chain = make(admin, *(f"r{number}" for number in range(11)))
    statuses = [add(admin, outer, {"role": inner}).status for outer, inner in pairwise(chain)]
    assert statuses == [200] * 9 + [409]


def test_of_two_additions_at_once_that_close_a_cycle_one_wins(admin: AsgiClient) -> None:
    for number in range(5):
        a, b = make(admin, f"a{number}", f"b{number}")
        with ThreadPoolExecutor(2) as threads:
            statuses = sorted(threads.map(lambda pair: add(admin, pair[0], {"role": pair[1]}).status, [(a, b), (b, a)]))
        assert statuses == [200, 409]


def test_a_role_that_is_deleted_meanwhile_leaves_no_member_behind(admin: AsgiClient) -> None:
    for number in range(5):
        outer, inner = make(admin, f"outer{number}", f"inner{number}")
        with ThreadPoolExecutor(2) as threads:
            adding = threads.submit(add, admin, outer, {"role": inner})
            deleting = threads.submit(admin.delete, f"{ROLE}/{inner}")
        assert deleting.result().status == 204
        assert adding.result().status in {200, 404}
    assert not Membership.objects.exists()


def test_a_user_who_is_deleted_meanwhile_is_in_no_role(admin: AsgiClient, people: People) -> None:
    (role,) = make(admin, "role")
    for number in range(5):
        people(f"u{number}")
        with ThreadPoolExecutor(2) as threads:
            adding = threads.submit(add, admin, role, user(f"u{number}"))
            deleting = threads.submit(admin.delete, f"/management/v1/user/oidc~u{number}")
        assert deleting.result().status == 204
        assert adding.result().status in {200, 400}
    assert not Membership.objects.exists()


def test_whoever_reads_the_role_reads_its_members_and_only_its_owner_changes_them(
    admin: AsgiClient, client: AsgiClient, people: People
) -> None:
    people("alice", "bob")
    (role,) = make(admin, "role")
    give("oidc~alice", "describe")
    alice = client.as_user("alice")
    assert members(alice, role) == []
    assert add(alice, role, user("alice")).error() == (403, "ForbiddenException")
    assert take_out(alice, role, "user", "oidc~bob").error() == (403, "ForbiddenException")
    ledger.give(
        access.role_chain(Role.objects.get(id=role)),
        [(PrincipalId("oidc~bob"), Privilege.OWNERSHIP)],
        granted_by=PrincipalId("oidc~admin"),
    )
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    bob = client.as_user("bob")
    assert add(bob, role, user("alice")).status == 200
    assert members(bob, role) == ["oidc~alice"]


def test_only_users_and_roles_are_taken_out(admin: AsgiClient) -> None:
    (role,) = make(admin, "role")
    assert take_out(admin, role, "table", GONE).error() == (404, "NoSuchRouteException")
    assert take_out(admin, role, "role", "no-uuid").error() == (400, "BadRequestException")
    assert admin.delete(f"{ROLE}/{role}/members/user/%00").status == 400
    assert take_out(admin, role, "user", "oidc~ghost").status == 204
