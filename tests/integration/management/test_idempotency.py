"""Mutations with an `Idempotency-Key`: carried out once, answered the same when repeated, after rights are checked."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakewarden import config
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.events.models import OutboxEvent
from lakewarden.idempotency.models import IdempotencyRecord
from tenants import access
from tenants.models import Role, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.servers.asgi_client import Answer, AsgiClient

Key = dict[str, str]
Mutation = Callable[[AsgiClient, Warehouse, Key], Answer]

ROLE = "/management/v1/role"


def new_key() -> Key:
    return {"idempotency-key": str(uuid.uuid4())}


def _warehouse(warehouse: Warehouse, *rest: str) -> str:
    return "/".join((f"/management/v1/warehouse/{warehouse.id}", *rest))


MUTATIONS: dict[str, Mutation] = {
    "create project": lambda client, _, key: client.post(
        "/management/v1/project", {"project-name": "Sea"}, headers=key
    ),
    "create role": lambda client, _, key: client.post(ROLE, {"name": "analysts"}, headers=key),
    "create user": lambda client, _, key: client.post(
        "/management/v1/user", {"id": "oidc~bob", "name": "Bob", "user-type": "human"}, headers=key
    ),
    "replace user": lambda client, _, key: client.call(
        "PUT", "/management/v1/user/oidc~ada", json={"name": "Ada", "user-type": "human"}, headers=key
    ),
    "delete user": lambda client, _, key: client.delete("/management/v1/user/oidc~ada", headers=key),
    "rename warehouse": lambda client, warehouse, key: client.post(
        _warehouse(warehouse, "rename"), {"new-name": "pond"}, headers=key
    ),
    "deactivate warehouse": lambda client, warehouse, key: client.post(
        _warehouse(warehouse, "deactivate"), {}, headers=key
    ),
    "protect warehouse": lambda client, warehouse, key: client.post(
        _warehouse(warehouse, "protection"), {"protected": True}, headers=key
    ),
    "grant": lambda client, warehouse, key: client.post(
        _warehouse(warehouse, "grants"),
        {"writes": [{"privilege": "select", "principal": {"user": "oidc~ada"}}]},
        headers=key,
    ),
    "delete warehouse": lambda client, warehouse, key: client.delete(_warehouse(warehouse), headers=key),
}


@pytest.fixture(autouse=True)
def ada(admin: AsgiClient, warehouse: Warehouse) -> None:
    body = {"id": "oidc~ada", "name": "Ada", "user-type": "human"}
    assert admin.post("/management/v1/user", body).status == 201


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_repeated_mutation_is_answered_as_the_first_and_does_nothing(
    admin: AsgiClient, warehouse: Warehouse, name: str
) -> None:
    key = new_key()
    first = MUTATIONS[name](admin, warehouse, key)
    assert first.status in {200, 201, 204}, first.body
    changes = OutboxEvent.objects.count()
    second = MUTATIONS[name](admin, warehouse, key)
    assert (second.status, second.body) == (first.status, first.body)
    assert OutboxEvent.objects.count() == changes


def test_a_repeated_request_does_not_undo_what_came_after_it(admin: AsgiClient, warehouse: Warehouse) -> None:
    key = new_key()
    first = MUTATIONS["rename warehouse"](admin, warehouse, key)
    assert admin.post(_warehouse(warehouse, "rename"), {"new-name": "sea"}).status == 200
    assert MUTATIONS["rename warehouse"](admin, warehouse, key).body == first.body
    warehouse.refresh_from_db()
    assert warehouse.name == "sea"


def test_a_refusal_is_repeated_even_when_it_would_succeed_now(admin: AsgiClient) -> None:
    key = new_key()
    role = admin.post(ROLE, {"name": "analysts"}).json()["id"]
    refused = admin.post(ROLE, {"name": "analysts"}, headers=key)
    assert refused.status == 409
    assert admin.delete(f"{ROLE}/{role}").status == 204
    assert admin.post(ROLE, {"name": "analysts"}, headers=key).body == refused.body
    assert not Role.objects.exists()


def test_a_key_of_another_request_is_refused(admin: AsgiClient) -> None:
    key = new_key()
    assert admin.post(ROLE, {"name": "analysts"}, headers=key).status == 201
    other = admin.post(ROLE, {"name": "engineers"}, headers=key)
    assert other.error() == (400, "BadRequestException")
    assert "was used for another request" in other.message()
    assert admin.post(ROLE, {"name": "engineers"}, headers={"idempotency-key": "7"}).status == 400


def test_who_lost_the_right_gets_no_answer_of_old(admin: AsgiClient, client: AsgiClient) -> None:
    """The 403 or 404 of the view itself."""
    chain, entry = access.project_chain(DEFAULT_PROJECT_ID), (PrincipalId("oidc~ann"), Privilege.PROJECT_ADMIN)
    ledger.give(chain, [entry], granted_by=PrincipalId("oidc~admin"))
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    ann, key = client.as_user("ann"), new_key()
    assert ann.post(ROLE, {"name": "analysts"}, headers=key).status == 201
    ledger.remove(chain[-1], [entry])
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    assert ann.post(ROLE, {"name": "analysts"}, headers=key).status in {403, 404}


def test_reads_ignore_the_header_and_refused_ones_leave_nothing(admin: AsgiClient, client: AsgiClient) -> None:
    key = new_key()
    for _ in range(2):
        assert admin.get(ROLE, headers=key).status == 200
        assert client.as_user("stranger").post(ROLE, {"name": "x"}, headers=key).status in {403, 404}
        assert admin.post(ROLE, {"name": []}, headers=key).status == 400
        assert admin.post("/management/v1/search/role", {"search": "a"}, headers=key).status == 200
    assert not IdempotencyRecord.objects.exists()


def test_an_answer_that_was_not_kept_is_told_honestly(admin: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = config.current()
    small = now.idempotency.model_copy(update={"max_answer_bytes": 10})
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"idempotency": small}))
    key = new_key()
    role = admin.post(ROLE, {"name": "analysts"}, headers=key).json()["id"]
    again = admin.post(ROLE, {"name": "analysts"}, headers=key)
    assert (again.status, Role.objects.count()) == (409, 1)
    assert f"read the role {role}" in again.message()


def test_the_same_key_at_the_same_time_acts_once(admin: AsgiClient) -> None:
    key = new_key()
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(admin.post, ROLE, {"name": "analysts"}, headers=key) for _ in range(4)]
        answers = [call.result() for call in calls]
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    assert Role.objects.count() == 1
