"""Changes through one server are in the next answer of the other; a change that is sent to both is made once."""

from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.replicas.pair import SCHEMA, Lake, Pair

COMMITS = 60


@pytest.fixture
def orders(lake: Lake) -> str:
    """The path of a table."""
    lake.add_namespace("sales")
    lake.add_table("sales", "orders")
    return lake.tables("sales", "orders")


def _set(**properties: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}


def test_a_commit_is_what_both_servers_load_next(pair: Pair, orders: str) -> None:
    tags = [each.ask(pair.admin, "GET", orders).headers["etag"] for each in pair.both]
    for number in range(COMMITS):
        writer = pair.both[number % 2]
        committed = writer.done("POST", orders, _set(number=str(number)))
        fresh = [
            replica.call(pair.admin, "GET", orders, if_none_match=tag)
            for replica, tag in zip(pair.both, tags, strict=True)
        ]
        answers = pair.ask(fresh)
        assert [answer.status for answer in answers] == [200, 200]
        for answer in answers:
            told = answer.json()
            assert told["metadata-location"] == committed["metadata-location"]
            assert told["metadata"]["properties"]["number"] == str(number)
        tags = [answer.headers["etag"] for answer in answers]
        again = [each.ask(pair.admin, "GET", orders, if_none_match=tags[0]).status for each in pair.both]
        assert again == [304, 304]


def test_what_is_created_and_dropped_through_one_is_so_for_the_other(pair: Pair, lake: Lake, orders: str) -> None:
    for number in range(20):
        writer, reader = pair.both[:: 1 if number % 2 else -1]
        path = lake.tables("sales", f"t{number}")
        writer.done("POST", lake.tables("sales"), {"name": f"t{number}", "schema": SCHEMA})
        assert reader.ask(pair.admin, "HEAD", path).status == 204
        assert f"t{number}" in {each["name"] for each in reader.done("GET", lake.tables("sales"))["identifiers"]}
        writer.done("DELETE", path)
        assert pair.statuses(pair.admin, "GET", path) == (404, 404)
        assert [each["name"] for each in reader.done("GET", lake.tables("sales"))["identifiers"]] == ["orders"]


def test_an_idempotency_key_counts_on_both_servers(pair: Pair, lake: Lake, orders: str) -> None:
    body = {"name": "fresh", "schema": SCHEMA}
    key = str(uuid4())
    first = pair.a.ask(pair.admin, "POST", lake.tables("sales"), body, idempotency_key=key)
    again = pair.b.ask(pair.admin, "POST", lake.tables("sales"), body, idempotency_key=key)
    assert (again.status, again.body) == (first.status, first.body) == (200, first.body)
    other = pair.b.ask(pair.admin, "POST", lake.tables("sales"), body, idempotency_key=str(uuid4()))
    assert other.error == (409, "AlreadyExistsException")

    key = str(uuid4())
    before = pair.b.ask(pair.admin, "POST", orders, _set(a="1"), idempotency_key=key).json()
    repeated = pair.a.ask(pair.admin, "POST", orders, _set(a="1"), idempotency_key=key).json()
    assert repeated["metadata-location"] == before["metadata-location"]
    assert pair.a.done("GET", orders)["metadata-location"] == before["metadata-location"]


def test_a_replay_is_answered_only_to_who_still_may(pair: Pair, lake: Lake, orders: str) -> None:
    person, key = pair.people[9], str(uuid4())
    grants = f"{lake.managed}/grants"
    pair.a.done("POST", grants, {"writes": [person.entry("write")]})
    assert pair.a.ask(person, "POST", orders, _set(a="1"), idempotency_key=key).status == 200
    assert pair.b.ask(person, "POST", orders, _set(a="1"), idempotency_key=key).status == 200
    pair.b.done("POST", grants, {"deletes": [person.entry("write")]})
    refused = [each.ask(person, "POST", orders, _set(a="1"), idempotency_key=key).status for each in pair.both]
    assert refused == [404, 404]


def test_one_key_at_once_on_both_servers_acts_once(pair: Pair, lake: Lake, orders: str) -> None:
    for number in range(10):
        headers, body = {"idempotency_key": str(uuid4())}, {"name": f"t{number}", "schema": SCHEMA}
        calls = [each.call(pair.admin, "POST", lake.tables("sales"), body, **headers) for each in pair.both * 2]
        answers = pair.ask(calls)
        assert {answer.status for answer in answers} == {200}, answers
        assert len({answer.body for answer in answers}) == 1


def test_of_creations_of_one_table_on_both_servers_one_succeeds(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("sales")
    for number in range(20):
        body = {"name": f"t{number}", "schema": SCHEMA}
        answers = pair.ask([each.call(pair.admin, "POST", lake.tables("sales"), body) for each in pair.both * 2])
        assert Counter(answer.status for answer in answers) == {200: 1, 409: 3}
        made = next(answer.json() for answer in answers if answer.status == 200)
        for replica in pair.both:
            told = replica.done("GET", lake.tables("sales", f"t{number}"))
            assert told["metadata-location"] == made["metadata-location"]


def test_commits_to_one_table_on_both_servers_are_all_kept(pair: Pair, orders: str) -> None:
    calls = [
        replica.call(pair.admin, "POST", orders, _set(**{f"{name}-{number}": "x"}))
        for number in range(16)
        for name, replica in zip("ab", pair.both, strict=True)
    ]
    answers = pair.ask(calls)
    assert Counter(answer.status for answer in answers) == {200: 32}
    locations = {answer.json()["metadata-location"] for answer in answers}
    assert len(locations) == 32
    for replica in pair.both:
        told = replica.done("GET", orders)["metadata"]
        assert {name for name in told["properties"] if "-" in name} >= {
            f"{name}-{number}" for number in range(16) for name in "ab"
        }
