"""`Idempotency-Key`: a repeated mutation changes nothing more and is answered as the first."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.utils import timezone

from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.idempotency import outcomes
from lakewarden.idempotency.models import IdempotencyRecord
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import Grant
from tests.integration.catalog.lake import SCHEMA, VIEW_VERSION, Lake, identifier, set_properties
from tests.servers.asgi_client import Answer

Recorded = Callable[[], list[str]]
Call = Callable[[Lake, dict[str, str]], Answer]


def _key() -> dict[str, str]:
    return {"idempotency-key": str(uuid.uuid4())}


def _staged(lake: Lake) -> None:
    lake.create_table("orders")
    lake.create_view("late")


MUTATIONS: dict[str, Call] = {
    "create namespace": lambda lake, key: lake.client.post(
        lake.path("namespaces"), {"namespace": ["new"], "properties": {"a": "1"}}, headers=key
    ),
    "update namespace properties": lambda lake, key: lake.client.post(
        lake.namespace("sales", "properties"), {"removals": ["none"], "updates": {"a": "1"}}, headers=key
    ),
    "create table": lambda lake, key: lake.client.post(
        lake.namespace("sales", "tables"), {"name": "new", "schema": SCHEMA}, headers=key
    ),
    "commit": lambda lake, key: lake.client.post(
        lake.table("orders"), {"requirements": [], "updates": [set_properties(a="1")]}, headers=key
    ),
    "drop table": lambda lake, key: lake.client.delete(lake.table("orders"), headers=key),
    "rename table": lambda lake, key: lake.client.post(
        lake.path("tables", "rename"),
        {"source": identifier("orders"), "destination": identifier("renamed")},
        headers=key,
    ),
    "transaction": lambda lake, key: lake.client.post(
        lake.path("transactions", "commit"),
        {
            "table-changes": [
                {"identifier": identifier("orders"), "requirements": [], "updates": [set_properties(b="2")]}
            ]
        },
        headers=key,
    ),
    "create view": lambda lake, key: lake.client.post(
        lake.namespace("sales", "views"),
        {"name": "new", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}},
        headers=key,
    ),
    "drop view": lambda lake, key: lake.client.delete(lake.view("late"), headers=key),
    "replace view": lambda lake, key: lake.client.post(
        lake.view("late"), {"requirements": [], "updates": [set_properties(a="1")]}, headers=key
    ),
    "rename view": lambda lake, key: lake.client.post(
        lake.path("views", "rename"),
        {"source": identifier("late"), "destination": identifier("later")},
        headers=key,
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_repeated_mutation_is_answered_as_the_first_and_does_nothing(
    lake: Lake, recorded: Recorded, name: str
) -> None:
    _staged(lake)
    key = _key()
    first = MUTATIONS[name](lake, key)
    assert first.status in {200, 204}, first.body
    after = recorded()

    second = MUTATIONS[name](lake, key)

    assert (second.status, second.body) == (first.status, first.body)
    assert recorded() == after


def test_a_refusal_is_repeated_even_when_it_would_succeed_now(lake: Lake) -> None:
    key = _key()
    lake.create_namespace("new")
    refused = MUTATIONS["create namespace"](lake, key)
    assert refused.error() == (409, "AlreadyExistsException")
    assert lake.client.delete(lake.namespace("new")).status == 204

    assert MUTATIONS["create namespace"](lake, key).body == refused.body
    assert MUTATIONS["create namespace"](lake, _key()).status == 200


def test_a_key_of_another_request_is_refused(lake: Lake) -> None:
    key = _key()
    assert MUTATIONS["create namespace"](lake, key).status == 200

    answer = MUTATIONS["create table"](lake, key)

    assert answer.error() == (400, "BadRequestException")
    assert "another request" in answer.message()


@pytest.mark.parametrize("value", ["", "1", "not-a-uuid", "0" * 32, "x" * 36])
def test_a_key_that_is_no_uuid_is_refused(lake: Lake, value: str) -> None:
    answer = MUTATIONS["create namespace"](lake, {"idempotency-key": value})

    assert answer.error() == (400, "BadRequestException")
    assert "Idempotency-Key" in answer.message()


def test_keys_of_two_callers_do_not_meet(lake: Lake, grant: Grant) -> None:
    grant("other", "modify")
    grant("other", "create")
    key = _key()
    assert MUTATIONS["create namespace"](lake, key).status == 200

    answer = MUTATIONS["create namespace"](lake.as_user("other"), key)

    assert answer.error() == (409, "AlreadyExistsException")


def test_a_caller_who_lost_his_rights_gets_no_answer_of_old(lake: Lake) -> None:
    key = _key()
    assert MUTATIONS["create table"](lake, key).status == 200
    GrantRow.objects.filter(principal_id="oidc~engine").delete()
    projects.bump_epoch(DEFAULT_PROJECT_ID)

    assert MUTATIONS["create table"](lake, key).error() == (404, "NoSuchWarehouseException")


def test_the_same_key_at_the_same_time_acts_once(lake: Lake, recorded: Recorded) -> None:
    key = _key()
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: MUTATIONS["create table"](lake, key), range(6)))

    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert recorded().count("createTable") == 1


def test_an_expired_key_may_be_used_again(lake: Lake) -> None:
    key = _key()
    assert MUTATIONS["create namespace"](lake, key).status == 200
    old = timezone.now() - outcomes.LIFETIME - outcomes.GRACE - timedelta(seconds=1)
    IdempotencyRecord.objects.update(created_at=old)

    assert MUTATIONS["create namespace"](lake, key).error() == (409, "AlreadyExistsException")
    IdempotencyRecord.objects.update(created_at=old)
    assert outcomes.forget_expired() == 1


def test_reads_ignore_the_header(lake: Lake) -> None:
    assert lake.client.get(lake.namespace("sales"), headers={"idempotency-key": "x"}).status == 200


def test_config_announces_how_long_keys_are_kept(lake: Lake) -> None:
    told = lake.client.get("/catalog/v1/config?warehouse=lake").json()

    assert told["idempotency-key-lifetime"] == "PT30M"
