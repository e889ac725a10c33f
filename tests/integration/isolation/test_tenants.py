"""Two tenants side by side: equal names, lists and pages, searches, and keys of repeated requests stay in a project."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from catalog.models import Namespace
from lakewarden.authz.ledger import grants
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants import access
from tenants.models import Role, Warehouse
from tenants.services import projects
from tests.integration.isolation.world import ADMIN, INTRUDERS, LAKE, SECRET, Tenant, World
from tests.servers.asgi_client import Answer, AsgiClient

M = "/management/v1"
LISTS = {
    "project-list": ("GET", f"{M}/project-list", None),
    "warehouses": ("GET", f"{M}/warehouse", None),
    "all warehouses": ("GET", f"{M}/warehouse?warehouseStatus=active&warehouseStatus=inactive", None),
    "roles": ("GET", f"{M}/role", None),
    "members": ("GET", f"{M}/role/{{role}}/members", None),
    "transitive members": ("GET", f"{M}/role/{{role}}/members/transitive", None),
    "roles of a role": ("GET", f"{M}/role/{{inner_role}}/member-of/transitive", None),
    "roles of a user": ("GET", f"{M}/user/{{user}}/roles", None),
    "roles by name": ("POST", f"{M}/search/role", {"search": "readers"}),
    "tables by name": ("POST", f"{M}/warehouse/{{warehouse}}/search-tabular", {"search": "ledger"}),
    "tables by a part": ("POST", f"{M}/warehouse/{{warehouse}}/search-tabular", {"search": "shared"}),
    "tasks of a warehouse": ("POST", f"{M}/warehouse/{{warehouse}}/task/list", {}),
    "tasks of a project": ("POST", f"{M}/project/task/list", {}),
    "statistics": ("GET", f"{M}/warehouse/{{warehouse}}/statistics", None),
    "maintenance": ("GET", f"{M}/warehouse/{{warehouse}}/maintenance", None),
    "calls": ("POST", f"{M}/endpoint-statistics", {"warehouse": {"type": "all"}}),
    "grants": ("GET", f"{M}/warehouse/{{warehouse}}/grants", None),
    "namespaces": ("GET", "/catalog/v1/{warehouse}/namespaces", None),
    "tables": ("GET", "/catalog/v1/{warehouse}/namespaces/{namespace}/tables", None),
    "views": ("GET", "/catalog/v1/{warehouse}/namespaces/{namespace}/views", None),
    "all namespaces": ("GET", "/lakehouse/w/{lake}/v1/namespaces", None),
}


def ask(tenant: Tenant, method: str, path: str, body: Any, *, caller: AsgiClient | None = None) -> Answer:
    return (caller or tenant.owner).call(method, path.format(**tenant.values), json=body)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_holds_what_is_in_its_project(world: World, name: str) -> None:
    answers = {tenant.values["project"]: ask(tenant, *LISTS[name]) for tenant in (world.a, world.b)}
    first, second = answers.values()
    assert (first.status, second.status) == (200, 200), (first.body, second.body)
    told = second.body.decode().lower()
    assert not [secret for secret in world.secrets if secret in told]
    of_b = set(world.b.values.values()) - set(world.a.values.values())
    assert not [value for value in of_b if value in first.body.decode()]


def test_the_first_project_has_something_to_hide(world: World) -> None:
    shown = [name for name in LISTS if SECRET in ask(world.a, *LISTS[name]).body.decode().lower()]
    assert {"project-list", "warehouses", "roles", "roles by name", "tables by name", "namespaces", "tables"} <= set(
        shown
    )


def test_people_of_the_other_project_are_not_found_by_name(world: World) -> None:
    body = {"search": "a-member"}
    found, not_found = (ask(tenant, "POST", f"{M}/search/user", body) for tenant in (world.a, world.b))
    assert "oidc~a-member" in {user["id"] for user in found.json()["users"]}
    assert "oidc~a-member" not in {user["id"] for user in not_found.json()["users"]}


def test_equal_names_in_two_projects_do_not_clash(world: World) -> None:
    assert Warehouse.objects.filter(name=LAKE).count() == 2
    assert Role.objects.filter(name="readers").count() == 2
    for tenant in (world.a, world.b):
        project = tenant.values["project"]
        for headers, query in (({"x-project-id": project}, LAKE), ({}, f"{project}/{LAKE}")):
            config = tenant.owner.get(f"/catalog/v1/config?warehouse={query}", headers=headers)
            assert config.json()["overrides"]["prefix"] == tenant.values["warehouse"]
        loaded = ask(tenant, "GET", "/lakehouse/w/{lake}/v1/namespaces/{namespace}/tables/{table}", None)
        assert loaded.json()["metadata"]["table-uuid"] == tenant.values["table_id"]


@pytest.mark.parametrize("kind", ["warehouse", "role"])
def test_a_name_is_taken_in_its_own_project_only(fresh_world: World, kind: str) -> None:
    name = {"warehouse": f"{SECRET}-two", "role": f"{SECRET}-readers"}[kind]

    def make(tenant: Tenant) -> int:
        place = Warehouse.objects.get(id=tenant.values["warehouse"]).storage_profile["base-path"]
        profile = {"type": "local", "base-path": f"{place}-two"}
        body = {"warehouse-name": name, "storage-profile": profile} if kind == "warehouse" else {"name": name}
        return tenant.owner.post(f"{M}/{kind}", body).status

    assert make(fresh_world.b) == 201
    assert make(fresh_world.b) == 409
    assert make(fresh_world.a) == (409 if kind == "role" else 201)


PAGED = {
    "warehouses": f"{M}/warehouse",
    "roles": f"{M}/role",
    "members": f"{M}/role/{{role}}/members",
    "namespaces": "/catalog/v1/{warehouse}/namespaces",
    "tables": "/catalog/v1/{warehouse}/namespaces/{namespace}/tables",
    "views": "/catalog/v1/{warehouse}/namespaces/{namespace}/views",
    "all namespaces": "/lakehouse/w/{lake}/v1/namespaces",
    "grants": f"{M}/project/grants",
}


@pytest.mark.parametrize("name", PAGED)
def test_a_page_token_of_one_project_shows_nothing_of_it_in_another(fresh_world: World, name: str) -> None:
    a, b = fresh_world.a, fresh_world.b
    if name == "warehouses":
        place = Warehouse.objects.get(id=a.values["warehouse"]).storage_profile["base-path"]
        body = {"warehouse-name": "a-two", "storage-profile": {"type": "local", "base-path": f"{place}-two"}}
        assert a.owner.post(f"{M}/warehouse", body).status == 201
    first = ask(a, "GET", f"{PAGED[name]}?pageSize=1", None)
    token = first.json()["next-page-token"]
    assert token
    elsewhere = ask(b, "GET", f"{PAGED[name]}?pageSize=100&pageToken={token}", None)
    assert elsewhere.status == 200
    assert _items(elsewhere) <= _items(ask(b, "GET", f"{PAGED[name]}?pageSize=100", None))
    stranger = fresh_world.client.as_user("b-admin")
    refused = ask(a, "GET", f"{PAGED[name]}?pageSize=1&pageToken={token}", None, caller=stranger)
    assert refused.status == 404


def _items(answer: Answer) -> set[str]:
    return {json.dumps(item, sort_keys=True) for items in _lists(answer.json()) for item in items}


def _lists(answer: dict[str, Any]) -> Iterator[list[Any]]:
    yield from (value for value in answer.values() if isinstance(value, list))


def _create(tenant: Tenant, caller: AsgiClient, key: str, *, path: str) -> Answer:
    headers = {"idempotency-key": key, "x-project-id": tenant.values["project"]}
    return caller.post(path.format(**tenant.values), {"namespace": ["fresh"]}, headers=headers)


BY_ID, BY_NAME = "/catalog/v1/{warehouse}/namespaces", "/lakehouse/w/{lake}/v1/namespaces"


@pytest.mark.parametrize("path", [BY_ID, BY_NAME])
def test_a_key_used_in_one_project_is_unknown_in_another(fresh_world: World, path: str) -> None:
    key = str(uuid4())
    for tenant in (fresh_world.a, fresh_world.b):
        assert _create(tenant, tenant.owner, key, path=path).status == 200
    assert Namespace.objects.filter(path=["fresh"]).count() == 2


@pytest.mark.parametrize("path", [BY_ID, BY_NAME])
def test_somebody_elses_key_tells_nothing(fresh_world: World, path: str) -> None:
    key, stranger = str(uuid4()), fresh_world.client.as_user("b-admin")
    assert _create(fresh_world.a, fresh_world.a.owner, key, path=path).status == 200
    assert _create(fresh_world.a, stranger, key, path=path).status == 404


@pytest.mark.parametrize("path", [BY_ID, BY_NAME])
def test_of_two_projects_of_one_person_a_key_belongs_to_one(fresh_world: World, path: str) -> None:
    key, both = str(uuid4()), fresh_world.client.as_user("both")
    for tenant in (fresh_world.a, fresh_world.b):
        project = tenant.values["project"]
        grants.give(
            access.project_chain(project), [(PrincipalId("oidc~both"), Privilege.PROJECT_ADMIN)], granted_by=ADMIN
        )
        projects.bump_epoch(project)
    assert _create(fresh_world.a, both, key, path=path).status == 200
    answer = _create(fresh_world.b, both, key, path=path)
    assert answer.status == 400
    assert "was used for another request" in answer.message()
    # the first one is still answered as before
    assert _create(fresh_world.a, both, key, path=path).status == 200
    assert Namespace.objects.filter(path=["fresh"]).count() == 1


ASSUMED_ON = {
    "own project": f"{M}/project",
    "own warehouse": f"{M}/warehouse/{{warehouse}}",
    "own tables": "/catalog/v1/{warehouse}/namespaces/{namespace}/tables",
}


@pytest.mark.parametrize("intruder", INTRUDERS)
@pytest.mark.parametrize("name", ASSUMED_ON)
def test_a_role_of_another_project_cannot_be_assumed_and_is_not_told_from_none(
    world: World, intruder: str, name: str
) -> None:
    for tenant in (world.a, world.b):
        path = ASSUMED_ON[name].format(**tenant.values)
        gone, role = str(uuid4()), world.a.values["role"]
        answers = [
            world.client.as_user(intruder).get(
                path, headers={"x-project-id": tenant.values["project"], "x-assume-role": assumed}
            )
            for assumed in (role, gone)
        ]
        assert answers[0].status == answers[1].status == 400
        assert answers[0].body.replace(role.encode(), gone.encode()) == answers[1].body


@pytest.mark.parametrize("name", ASSUMED_ON)
def test_a_role_says_nothing_in_another_project(world: World, name: str) -> None:
    member = world.client.as_user("b-member")
    headers = {"x-assume-role": world.b.values["role"]}
    statuses = [
        member.get(
            ASSUMED_ON[name].format(**tenant.values), headers={**headers, "x-project-id": tenant.values["project"]}
        ).status
        for tenant in (world.a, world.b)
    ]
    assert statuses == [404, 200]
