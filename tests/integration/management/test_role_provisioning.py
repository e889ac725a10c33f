from typing import Any

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
GROUP = {"provider-id": "oidc", "source-id": "analysts"}


@pytest.fixture
def alice_and_bob(admin: AsgiClient, client: AsgiClient) -> None:
    for name in ("alice", "bob"):
        client.as_user(name).post("/management/v1/user", {})


def provision(caller: AsgiClient, *roles: dict[str, Any], **more: Any) -> Answer:
    return caller.post(f"{ROLE}/provision", {"roles": list(roles), **more})


def outcomes(caller: AsgiClient, *roles: dict[str, Any], **more: Any) -> list[str]:
    answer = provision(caller, *roles, **more)
    assert answer.status == 200, answer.body
    return [role["outcome"] for role in answer.json()["roles"]]


def people(name: str) -> list[str]:
    principal = Role.objects.get(name=name).principal
    return list(Membership.objects.filter(role_id=principal).order_by("member_id").values_list("member_id", flat=True))


def recorded() -> tuple[int, int, int]:
    return AuditEntry.objects.count(), OutboxEvent.objects.count(), Project.objects.get().authz_epoch


@pytest.mark.usefixtures("alice_and_bob")
def test_roles_with_members_are_made_in_the_order_of_the_body_and_a_repeat_changes_nothing(admin: AsgiClient) -> None:
    wanted: list[dict[str, Any]] = [
        {"name": "Analysts", "description": "they read", **GROUP, "members": [{"user": "oidc~alice"}]},
        {"name": "engineers", "members": [{"type": "user", "id": "oidc~bob"}, {"user": "oidc~alice"}]},
        {"name": "empty", "provider-id": None},
    ]
    first = provision(admin, *wanted)
    assert [role["name"] for role in first.json()["roles"]] == ["Analysts", "engineers", "empty"]
    assert {role["outcome"] for role in first.json()["roles"]} == {"created"}
    assert people("engineers") == ["oidc~alice", "oidc~bob"]
    assert Grant.objects.filter(object_type="role", principal_id="oidc~admin", privilege="ownership").count() == 3
    assert AuditEntry.objects.filter(action="createRole").count() == 3
    before = recorded()
    again = provision(admin, *wanted, **{"prune-members": True})
    assert [role["id"] for role in again.json()["roles"]] == [role["id"] for role in first.json()["roles"]]
    assert {role["outcome"] for role in again.json()["roles"]} == {"unchanged"}
    assert recorded() == before


@pytest.mark.usefixtures("alice_and_bob")
def test_what_differs_is_updated_and_what_is_left_out_stays(admin: AsgiClient) -> None:
    members = [{"user": "oidc~alice"}]
    provision(admin, {"name": "Analysts", "description": "d", **GROUP, "members": members}, {"name": "other"})
    renamed = {"name": "Readers", **GROUP, "members": [{"user": "oidc~bob"}]}
    assert outcomes(admin, renamed, {"name": "OTHER"}) == ["updated", "updated"]
    assert Role.objects.get(name="Readers").description == "d"
    assert people("Readers") == ["oidc~alice", "oidc~bob"]
    assert outcomes(admin, {"name": "Readers", **GROUP}, **{"prune-members": True}) == ["unchanged"]
    assert outcomes(admin, renamed, **{"prune-members": True}) == ["updated"]
    assert people("Readers") == ["oidc~bob"]


def test_a_hierarchy_may_be_turned_upside_down_at_once(admin: AsgiClient) -> None:
    a, b = (role["id"] for role in provision(admin, {"name": "a"}, {"name": "b"}).json()["roles"])
    assert outcomes(admin, {"name": "a", "members": [{"role": b}]}, {"name": "b", "members": []}) == [
        "updated",
        "unchanged",
    ]
    turned = ({"name": "a", "members": []}, {"name": "b", "members": [{"role": a}]})
    assert provision(admin, *turned).error() == (409, "RoleMembershipCycleException")
    assert outcomes(admin, *turned, **{"prune-members": True}) == ["updated", "updated"]


@pytest.mark.usefixtures("alice_and_bob")
def test_one_wrong_role_refuses_all(admin: AsgiClient) -> None:
    provision(admin, {"name": "taken"})
    before = recorded()
    for wrong, status in (
        ({"name": "TAKEN", **GROUP}, 409),
        ({"name": "x", "members": [{"user": "oidc~ghost"}]}, 404),
        ({"name": "x", "members": [{"role": "0197f1c2-0000-7000-8000-000000000000"}]}, 404),
        ({"name": "x\t"}, 400),
    ):
        assert provision(admin, {"name": "fine"}, wrong).status == status
    assert [role.name for role in Role.objects.all()] == ["taken"]
    assert recorded() == before


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "roles"),
        ({"roles": "all"}, "roles"),
        ({"roles": ["a"]}, "roles[0]"),
        ({"roles": [{}]}, "roles[0].name"),
        ({"roles": [{"name": "a", "member": []}]}, "roles[0].member: unknown member"),
        ({"roles": [{"name": "a", "members": [{"user": "x"}]}]}, "'<provider>~<subject>'"),
        ({"roles": [{"name": "a", "members": [{"users": "x"}]}]}, "roles[0].members[0]"),
        ({"roles": [{"name": "a", "provider-id": "oidc"}]}, "belong together"),
        ({"roles": [{"name": "a"}, {"name": "A"}]}, "described twice"),
        ({"roles": [{"name": "a", **GROUP}, {"name": "b", **GROUP}]}, "described twice"),
        ({"roles": [{"name": str(number)} for number in range(1001)]}, "roles"),
        ({"roles": [], "prune": True}, "unknown member 'prune'"),
    ],
)
def test_a_bad_body_is_refused(admin: AsgiClient, body: dict[str, Any], reason: str) -> None:
    answer = admin.post(f"{ROLE}/provision", body)
    assert answer.status == 400
    assert reason in answer.message()
    assert not Role.objects.exists()


def test_too_many_members_in_all_are_refused(admin: AsgiClient) -> None:
    crowd = [{"user": f"oidc~{number}"} for number in range(1000)]
    answer = provision(admin, *({"name": str(number), "members": crowd} for number in range(11)))
    assert (answer.status, "at most 10000" in answer.message()) == (400, True)


def test_a_thousand_roles_are_made_in_one_call(admin: AsgiClient) -> None:
    wanted = [{"name": f"role {number}"} for number in range(1000)]
    assert set(outcomes(admin, *wanted)) == {"created"}
    assert set(outcomes(admin, *wanted)) == {"unchanged"}


@pytest.mark.usefixtures("alice_and_bob")
def test_whoever_may_create_roles_does_not_change_those_of_others(admin: AsgiClient, client: AsgiClient) -> None:
    provision(admin, {"name": "others", **GROUP})
    for name, privilege in (("alice", Privilege.ROLE_CREATOR), ("bob", Privilege.DESCRIBE)):
        chain = access.project_chain(DEFAULT_PROJECT_ID)
        ledger.give(chain, [(PrincipalId(f"oidc~{name}"), privilege)], granted_by=PrincipalId("oidc~admin"))
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    alice = client.as_user("alice")
    assert outcomes(alice, {"name": "others"}, {"name": "own"}) == ["unchanged", "created"]
    for change in (
        {"name": "renamed", **GROUP},
        {"name": "others", "description": "d"},
        {"name": "others", "members": [{"user": "oidc~alice"}]},
    ):
        assert provision(alice, {"name": "new"}, change).error() == (403, "ForbiddenException")
    assert outcomes(alice, {"name": "own", "members": [{"user": "oidc~alice"}]}) == ["updated"]
    assert provision(client.as_user("bob"), {"name": "b"}).error() == (403, "ForbiddenException")
    assert provision(client.as_user("nobody"), {"name": "b"}).error() == (404, "NoSuchProjectException")
    assert not Role.objects.filter(name="new").exists()


def test_a_role_of_another_project_is_not_touched(admin: AsgiClient) -> None:
    provision(admin, {"name": "same", **GROUP})
    admin.post("/management/v1/project", {"project-name": "Blue", "project-id": "blue"})
    answer = admin.post(f"{ROLE}/provision", {"roles": [{"name": "same", **GROUP}]}, headers={"x-project-id": "blue"})
    assert answer.json()["roles"][0]["outcome"] == "created"
    assert Role.objects.count() == 2
