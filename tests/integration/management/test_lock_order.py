"""Changes of rights lock rows in one order (see `lakewarden.db_transaction`): a session that waits for a row holds no
later one.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from psycopg.errors import DeadlockDetected

from catalog.models import Namespace
from lakewarden.audit.models import AuditEntry
from tenants.models import Role, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import roles
from tests.servers.asgi_client import Answer, AsgiClient

API = "/management/v1"
ROLE = "select id from role where id = %s for update"
USER = "select id from lakewarden_user where id = %s for no key update"
PROJECT = "select id from project where id = %s for no key update"
WAITING = "select count(*) from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"


@pytest.fixture
def other(database_url: str, client: AsgiClient) -> Iterator[psycopg.Connection[Any]]:
    """Another session's transaction, which keeps its locks until it is rolled back."""
    with psycopg.connect(database_url) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def alice(client: AsgiClient, admin: AsgiClient) -> str:
    assert client.as_user("alice").get(f"{API}/whoami").status == 200
    return "oidc~alice"


@pytest.fixture
def role_id(admin: AsgiClient, alice: str) -> str:
    """Of a role that Alice is in."""
    made = str(admin.post(f"{API}/role", {"name": "readers"}).json()["id"])
    assert admin.post(f"{API}/role/{made}/members", {"members": [{"user": alice}]}).status == 200
    return made


def call_while_held(other: psycopg.Connection[Any], admin: AsgiClient, method: str, path: str, body: Any) -> Answer:
    """The answer to a request that has to wait for `other`, which then takes the project's row as well."""
    with ThreadPoolExecutor(1) as pool:
        asked: Future[Answer] = pool.submit(admin.call, method, API + path, json=body)
        try:
            _wait_for_waiting(other)
            other.execute("set local lock_timeout = '500ms'")
            other.execute(PROJECT, [DEFAULT_PROJECT_ID])
        finally:
            other.rollback()
        return asked.result(60)


def _wait_for_waiting(other: psycopg.Connection[Any]) -> None:
    deadline = time.monotonic() + 60
    while other.execute(WAITING).fetchone() == (0,):
        assert time.monotonic() < deadline, "the request does not wait for what is held"
        time.sleep(0.01)


def grants(side: str, principal: dict[str, str]) -> dict[str, Any]:
    return {side: [{"privilege": "select", "principal": principal}]}


def test_a_grant_to_a_role_that_is_being_changed(
    admin: AsgiClient, other: psycopg.Connection[Any], role_id: str
) -> None:
    other.execute(ROLE, [role_id])
    assert call_while_held(other, admin, "POST", "/project/grants", grants("writes", {"role": role_id})).status == 204


@pytest.mark.parametrize("side", ["writes", "deletes"])
def test_a_grant_or_its_end_for_a_user_who_is_being_deleted(
    admin: AsgiClient, other: psycopg.Connection[Any], alice: str, side: str
) -> None:
    other.execute(USER, [alice])
    assert call_while_held(other, admin, "POST", "/project/grants", grants(side, {"user": alice})).status == 204


def test_a_member_who_is_taken_out_while_he_is_being_deleted(
    admin: AsgiClient, other: psycopg.Connection[Any], alice: str, role_id: str
) -> None:
    other.execute(USER, [alice])
    path = f"/role/{role_id}/members/user/{alice}"
    assert call_while_held(other, admin, "DELETE", path, None).status == 204


def test_a_member_who_is_pruned_while_he_is_being_deleted(
    admin: AsgiClient, other: psycopg.Connection[Any], alice: str, role_id: str
) -> None:
    other.execute(USER, [alice])
    body = {"roles": [{"name": "readers", "members": []}], "prune-members": True}
    answer = call_while_held(other, admin, "POST", "/role/provision", body)
    assert answer.json()["roles"] == [{"id": role_id, "name": "readers", "outcome": "updated"}]


def test_owners_and_members_in_one_request(
    admin: AsgiClient, other: psycopg.Connection[Any], alice: str, role_id: str
) -> None:
    other.execute(USER, [alice])
    body = {"writes": [{"type": "ownership", "user": alice}], "deletes": [{"type": "assignee", "user": alice}]}
    path = f"/permissions/role/{role_id}/assignments"
    assert call_while_held(other, admin, "POST", path, body).status == 204


def test_a_grant_on_a_namespace_that_is_being_moved(
    admin: AsgiClient, engine: AsgiClient, other: psycopg.Connection[Any], warehouse: Warehouse, alice: str
) -> None:
    assert engine.post(f"/catalog/v1/{warehouse.id}/namespaces", {"namespace": ["a"]}).status == 200
    found = Namespace.objects.get()
    other.execute("select id from namespace where id = %s for update", [found.id])
    path = f"/warehouse/{warehouse.id}/namespace/{found.id}/grants"
    assert call_while_held(other, admin, "POST", path, grants("writes", {"user": alice})).status == 204


def test_a_project_that_is_deleted_while_a_role_of_it_is_being_changed(
    admin: AsgiClient, other: psycopg.Connection[Any], role_id: str
) -> None:
    other.execute(ROLE, [role_id])
    assert call_while_held(other, admin, "DELETE", "/project", None).status == 204
    assert not Role.objects.exists()


def test_a_user_who_is_deleted_keeps_his_rights_until_the_project_is_free(
    admin: AsgiClient, other: psycopg.Connection[Any], alice: str, role_id: str
) -> None:
    assert admin.post(f"{API}/project/grants", grants("writes", {"user": alice})).status == 204
    other.execute(PROJECT, [DEFAULT_PROJECT_ID])
    with ThreadPoolExecutor(1) as pool:
        deleted = pool.submit(admin.delete, f"{API}/user/{alice}")
        try:
            _wait_for_waiting(other)
            other.execute("set local lock_timeout = '500ms'")
            other.execute("select id from authz_grant where principal_id = %s for update", [alice])
            other.execute("select id from authz_membership where member_id = %s for update", [alice])
        finally:
            other.rollback()
        assert deleted.result(60).status == 204
    assert admin.get(f"{API}/role/{role_id}/members").json()["members"] == []


def test_a_role_that_is_rebound_is_not_written_until_the_project_is_free(
    admin: AsgiClient, other: psycopg.Connection[Any], role_id: str
) -> None:
    other.execute(PROJECT, [DEFAULT_PROJECT_ID])
    body = {"provider-id": "oidc", "source-id": "readers"}
    with ThreadPoolExecutor(1) as pool:
        rebound = pool.submit(admin.call, "PUT", f"{API}/role/{role_id}/source-system", json=body)
        try:
            _wait_for_waiting(other)
            other.execute("set local lock_timeout = '500ms'")
            other.execute(
                "insert into role (id, project_id, name, name_key, provider_id, source_id, created_at) "
                "select gen_random_uuid(), project_id, name, name_key, 'x', 'x', now() from role on conflict do nothing"
            )
        finally:
            other.rollback()
        assert rebound.result(60).status == 200


def test_a_request_that_lost_a_deadlock_is_begun_once_more(admin: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    insert, attempts = roles.insert, []

    def lose_first(*arguments: Any) -> None:
        attempts.append(arguments)
        if len(attempts) == 1:
            raise OperationalError from DeadlockDetected("deadlock detected")
        insert(*arguments)

    monkeypatch.setattr(roles, "insert", lose_first)
    assert admin.post(f"{API}/role", {"name": "readers"}).status == 201
    assert len(attempts) == 2
    assert AuditEntry.objects.filter(action="createRole").count() == 1
