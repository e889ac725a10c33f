"""Ids of another project, on every route that takes one: answered like unknown ids, and in the other project's audit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.models import Namespace, Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger.models import Membership
from lakewarden.context import role_principal
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.integration.management.town import EVE, UNKNOWN, M, Town, ok, on
from tests.servers.asgi_client import Answer


@pytest.fixture
def foreign(town: Town) -> dict[str, str]:
    """Ids of another project, which only its administrator knows of."""
    other = {"x-project-id": "other"}
    admin = town.admin.client
    ok(admin.post(f"{M}/project", {"project-name": "Other", "project-id": "other"}))
    role = ok(admin.post(f"{M}/role", {"name": "theirs"}, headers=other)).json()["id"]
    path = str(Path(town.warehouse.location.removeprefix("file://")).parent / "sea")
    body = {"warehouse-name": "sea", "storage-profile": {"type": "local", "base-path": path}}
    sea = Lake(admin, ok(admin.post(f"{M}/warehouse", body, headers=other)).json()["id"])
    ok(sea.create_namespace("deep"))
    ok(sea.create_table("fish", within="deep"))
    ok(sea.create_table("dropped", within="deep"))
    ok(admin.delete(f"{sea.table('dropped', within='deep')}?purgeRequested=true"))
    (task,) = ok(admin.post(f"{M}/warehouse/{sea.warehouse_id}/task/list", {})).json()["tasks"]
    # in her own project eve may do everything
    ok(admin.post(f"{M}/project/grants", on("project_admin", EVE)))
    return {
        "role": role,
        "warehouse": sea.warehouse_id,
        "namespace": str(Namespace.objects.get(path=["deep"]).id),
        "table": str(Tabular.objects.get(name="fish").uuid),
        "task": str(task["task-id"]),
    }


def own(town: Town) -> str:
    return f"{M}/warehouse/{town.warehouse.id}"


Try = Callable[[Town, dict[str, str]], Answer]

CROSSINGS: dict[str, tuple[str, Try]] = {
    "a grant to a role": (
        "name_as_principal",
        lambda town, ids: town.eve.client.post(f"{own(town)}/grants", on("select", ids["role"], "role")),
    ),
    "an assignment to a role": (
        "name_as_principal",
        lambda town, ids: town.eve.client.post(
            f"{M}/permissions/warehouse/{town.warehouse.id}/assignments",
            {"writes": [{"type": "select", "role": ids["role"]}]},
        ),
    ),
    "a role as owner of a role": (
        "name_as_principal",
        lambda town, ids: town.eve.client.post(
            f"{M}/permissions/role/{town.mine}/assignments", {"writes": [{"type": "assignee", "role": ids["role"]}]}
        ),
    ),
    "a role as member": (
        "read_metadata",
        lambda town, ids: town.eve.client.post(f"{M}/role/{town.mine}/members", {"members": [{"role": ids["role"]}]}),
    ),
    "a role as provisioned member": (
        "name_as_principal",
        lambda town, ids: town.eve.client.post(
            f"{M}/role/provision", {"roles": [{"name": "fresh", "members": [{"role": ids["role"]}]}]}
        ),
    ),
    "members of a role": (
        "manage_role_assignments",
        lambda town, ids: town.eve.client.post(f"{M}/role/{ids['role']}/members", {"members": [{"user": EVE}]}),
    ),
    "whose rights": (
        "read_metadata",
        lambda town, ids: town.eve.client.get(f"{own(town)}/explanation?action=use&principalRole={ids['role']}"),
    ),
    "a task": ("name_task", lambda town, ids: town.eve.client.get(f"{own(town)}/task/by-id/{ids['task']}")),
    "control of a task": (
        "name_task",
        lambda town, ids: town.eve.client.post(
            f"{own(town)}/task/control", {"action": {"action-type": "cancel"}, "task-ids": [ids["task"]]}
        ),
    ),
    "protection in one's own warehouse": (
        "set_protection",
        lambda town, ids: town.eve.client.post(f"{own(town)}/table/{ids['table']}/protection", {"protected": False}),
    ),
    "protection": (
        "set_protection",
        lambda town, ids: town.eve.client.post(
            f"{M}/warehouse/{ids['warehouse']}/namespace/{ids['namespace']}/protection", {"protected": False}
        ),
    ),
    "a move in one's own warehouse": (
        "move",
        lambda town, ids: town.eve.client.post(
            f"{own(town)}/namespace/{ids['namespace']}/move", {"destination": ["hers", "deep"]}
        ),
    ),
    "grants in one's own warehouse": (
        "include_in_list",
        lambda town, ids: town.eve.client.post(f"{own(town)}/table/{ids['table']}/grants", on("select", EVE)),
    ),
    "a warehouse": (
        "rename",
        lambda town, ids: town.eve.client.post(f"{M}/warehouse/{ids['warehouse']}/rename", {"new-name": "mine"}),
    ),
    "an assumed role": (
        "assume",
        lambda town, ids: town.eve.client.get(own(town), headers={"x-assume-role": ids["role"]}),
    ),
}


@pytest.mark.parametrize("crossing", CROSSINGS)
def test_ids_of_another_project_are_missing_and_their_use_is_on_its_record(
    town: Town, foreign: dict[str, str], crossing: str
) -> None:
    action, attempt = CROSSINGS[crossing]
    with town.refusing(action):
        answer = attempt(town, foreign)
        assert answer.status == (400 if "assume" in crossing else 404), answer.body
        assert "does not exist" in answer.message()
    assert AuditEntry.objects.filter(actor=EVE, outcome="denied").latest("id").project_id == "other"
    unknown = attempt(town, dict.fromkeys(foreign, UNKNOWN))
    told = answer.body.decode()
    for each in foreign.values():
        told = told.replace(each, UNKNOWN)
    assert told == unknown.body.decode()


def test_checks_and_searches_find_nothing_of_another_project(town: Town, foreign: dict[str, str]) -> None:
    there = {"warehouse-id": foreign["warehouse"], "table-id": foreign["table"]}
    mixed = {"warehouse-id": str(town.warehouse.id), "table-id": foreign["table"]}
    checks = [{"operation": {"table": {"action": "get_metadata", **each}}} for each in (there, mixed)]
    with town.refusing():
        told = town.eve.client.post(f"{M}/action/batch-check", {"checks": checks}).json()["results"]
        assert told == [{"allowed": False}] * 2
        strict = {"checks": checks[:1], "error-on-not-found": True}
        assert town.eve.client.post(f"{M}/action/batch-check", strict).status == 404
        found = town.eve.client.post(f"{own(town)}/search-tabular", {"search": foreign["table"]}).json()
        assert not any(found.values())
        assert town.eve.client.post(f"{M}/search/role", {"search": foreign["role"]}).json() == {"roles": []}
        listed = town.eve.client.get(f"{M}/role?roleIds={foreign['role']}").json()
        assert listed["roles"] == []


def test_what_a_role_of_another_project_holds_counts_for_nobody_here(town: Town, foreign: dict[str, str]) -> None:
    """Even were the row there, as in a database that somebody has edited."""
    Membership.objects.create(
        role_id=role_principal(foreign["role"]), member_id=EVE, project_id="other", added_by=ADMIN
    )
    headers = {"x-assume-role": foreign["role"]}
    assert town.eve.client.get(own(town), headers=headers).status in {400, 404}
