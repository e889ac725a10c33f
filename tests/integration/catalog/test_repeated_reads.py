"""Reads that come again byte for byte are answered as Django answers them, with one query, and never from an older state."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from catalog.api.hot.repeats import RepeatedRead
from lakewarden import asgi, backends
from lakewarden.audit.decision_buffer import DECISIONS
from lakewarden.authz.decision_cache import HELD_PRIVILEGES
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.hot.file_checks import FILES
from lakewarden.http import health
from lakewarden.usage.call_counter import COUNTS
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import Grant
from tests.integration.catalog.counted import Counted, queries
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import local
from tests.servers.asgi_client import Answer, run
from tests.servers.stub_authenticator import StubAuthenticator
from tests.servers.wire import Wire

__all__ = ["queries"]

GZIP = "Accept-Encoding: gzip"
UNTIL_KEPT = 3
"""The first is noted, the second kept, the third the first that is not read."""


class Kept:
    """Answers that were sent as they were kept, since the last look."""

    def __init__(self) -> None:
        self.number = 0

    def take(self) -> int:
        number, self.number = self.number, 0
        return number


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    counted, at_once = Kept(), RepeatedRead.at_once

    def counting(self: RepeatedRead, looking: Any) -> Any:
        found = at_once(self, looking)
        counted.number += found is not None
        return found

    monkeypatch.setattr(RepeatedRead, "at_once", counting)
    return counted


@pytest.fixture(autouse=True)
def files_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes longer between two loads than files are believed to be there."""
    monkeypatch.setattr(FILES, "_trust_s", 600.0)


@pytest.fixture
def wire() -> Wire:
    return Wire.opened(authorization="Bearer engine")


@pytest.fixture
def orders(lake: Lake) -> str:
    assert lake.create_table("orders").status == 200
    return lake.table("orders")


def warm(wire: Wire, method: str, target: str, *further: str) -> list[Answer]:
    return [wire.ask(method, target, *further) for _ in range(UNTIL_KEPT)]


def same(first: Answer, second: Answer) -> None:
    assert (first.status, first.body) == (second.status, second.body)
    assert {name: value for name, value in first.headers.items() if name != "x-request-id"} == {
        name: value for name, value in second.headers.items() if name != "x-request-id"
    }


def test_what_was_kept_is_what_django_answers(
    lake: Lake, wire: Wire, kept: Kept, queries: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lake.create_table("orders").status == 200
    orders = lake.table("orders")
    tag = lake.client.get(orders).headers["etag"]
    lake.create_view("shown")
    calls: Sequence[tuple[str, ...]] = [
        ("GET", orders, GZIP),
        ("GET", orders, "Accept-Encoding: identity"),
        ("GET", orders + "?snapshots=all", GZIP),
        ("GET", orders, GZIP, f"If-None-Match: {tag}"),
        ("HEAD", orders),
        ("GET", lake.view("shown"), GZIP),
        ("HEAD", lake.view("shown")),
        ("GET", lake.namespace("sales")),
        ("HEAD", lake.namespace("sales")),
        ("GET", "/catalog/v1/config?warehouse=lake", "X-Forwarded-Host: not.trusted"),
    ]
    lake.client.get(lake.view("shown"))
    for call in calls:
        warm(wire, *call)
    kept.take()
    queries.take()
    hot = [wire.ask(*call) for call in calls]
    assert kept.take() == len(calls)
    assert queries.take() == (len(calls), 0)
    assert len({answer.headers["x-request-id"] for answer in hot}) == len(calls)

    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    monkeypatch.setattr(asgi.application, "lane", None)
    cold = Wire.opened(authorization="Bearer engine")
    for call, answer in zip(calls, hot, strict=True):
        same(answer, cold.ask(*call))
    assert [answer.status for answer in hot] == [200, 200, 200, 304, 204, 200, 204, 200, 204, 200]
    connections.close_all()


@pytest.mark.parametrize("size", [100_000, 200_000])
def test_an_answer_that_has_become_large_is_not_held(lake: Lake, orders: str, wire: Wire, size: int) -> None:
    """The larger one leaves the lane; what was kept before it is not held either, for neither is counted."""
    warm(wire, "GET", orders)
    (repeat,) = kept_of(orders)
    assert repeat._kept is not None
    assert lake.commit("orders", set_properties(filler="x" * size)).status == 200
    for _ in range(2):
        assert len(wire.ask("GET", orders).body) > size
        assert kept_of(orders) == [repeat]
        assert not any([repeat._made, repeat._kept])


def test_an_answer_that_nobody_waits_for_is_not_held(
    lake: Lake, orders: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(wire, "GET", orders)
    (repeat,) = kept_of(orders)
    assert lake.commit("orders", set_properties(number="1")).status == 200
    has_left = threading.Event()

    async def leave(*_: object) -> bool:
        wire.connection.connection_lost(None)
        asyncio.get_running_loop().call_soon(has_left.set)
        return False

    monkeypatch.setattr(FILES, "is_missing", leave)
    request = f"GET {orders} HTTP/1.1\r\nHost: catalog.test\r\nauthorization: Bearer engine\r\n\r\n".encode()
    wire.connection.loop.call_soon_threadsafe(wire.connection.data_received, request)
    assert has_left.wait(20)
    assert not any([repeat._made, repeat._kept])


def kept_of(path: str) -> list[RepeatedRead]:
    repeats: Any = asgi.application.lane.repeats._kept._kept.values()
    return [repeat for repeat, _, _ in repeats if repeat.request.path.decode() == path]


def test_a_client_with_ids_of_its_own_gets_them_back(orders: str, wire: Wire, kept: Kept) -> None:
    for number in range(5):
        answer = wire.ask("GET", orders, f"X-Request-Id: mine-{number % 2}")
        assert answer.headers["x-request-id"] == f"mine-{number % 2}"
    assert kept.take() == 0


def test_what_is_kept_does_not_contain_the_token(orders: str, wire: Wire) -> None:
    warm(wire, "GET", orders, "Cookie: session=secret")
    found = kept_of(orders)
    assert found
    for repeat in found:
        assert not {b"authorization", b"cookie"} & repeat.request.headers.keys()


def test_a_commit_is_seen_by_the_very_next_load_with_one_query(
    lake: Lake, orders: str, wire: Wire, kept: Kept, queries: Counted
) -> None:
    warm(wire, "GET", orders)
    for number in range(5):
        assert lake.commit("orders", set_properties(number=str(number))).status == 200
        kept.take()
        queries.take()
        assert wire.ask("GET", orders).json()["metadata"]["properties"]["number"] == str(number)
        assert (kept.take(), queries.take()) == (0, (1, 0))
        assert wire.ask("GET", orders).json()["metadata"]["properties"]["number"] == str(number)
        assert (kept.take(), queries.take()) == (1, (1, 0))


def revoke(_: Lake) -> None:
    GrantRow.objects.filter(principal_id="oidc~reader").delete()
    projects.bump_epoch(DEFAULT_PROJECT_ID)


def drop(lake: Lake) -> None:
    assert lake.client.delete(lake.table("orders")).status == 204


def rename(lake: Lake) -> None:
    source, target = ({"namespace": ["sales"], "name": name} for name in ("orders", "bills"))
    assert lake.client.post(lake.path("tables", "rename"), {"source": source, "destination": target}).status == 204


def deactivate(lake: Lake) -> None:
    Warehouse.objects.filter(id=lake.warehouse_id).update(status="inactive")


@pytest.mark.parametrize("change", [revoke, drop, rename, deactivate])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_is_gone_is_gone_for_the_very_next_request(
    lake: Lake, grant: Grant, kept: Kept, change: Callable[[Lake], None], method: str
) -> None:
    assert lake.create_table("orders").status == 200
    orders = lake.table("orders")
    grant("reader", "select")
    reader = Wire.opened(authorization="Bearer reader")
    # the first decision is Django's, and is known after that
    assert [reader.ask(method, orders).status for _ in range(5)] == [204 if method == "HEAD" else 200] * 5
    assert kept.take() > 0
    change(lake)
    answer, expected = reader.ask(method, orders), lake.as_user("reader").client.call(method, orders)
    assert kept.take() == 0
    assert answer.status == expected.status
    assert answer.status >= 400
    assert {**answer.headers, "x-request-id": ""} == {**expected.headers, "x-request-id": ""}


def test_a_decision_that_is_not_known_any_more_is_made_again(orders: str, wire: Wire, kept: Kept) -> None:
    warm(wire, "GET", orders)
    HELD_PRIVILEGES.clear()
    kept.take()
    assert wire.ask("GET", orders).status == 200
    assert kept.take() == 0


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_token_that_is_to_be_looked_at_again_is(
    orders: str, wire: Wire, kept: Kept, monkeypatch: pytest.MonkeyPatch, *, is_refused: bool
) -> None:
    warm(wire, "GET", orders)
    kept.take()
    monkeypatch.setattr(StubAuthenticator, "find_marked", lambda *_: None)
    if is_refused:
        authenticate = StubAuthenticator.authenticate
        monkeypatch.setattr(StubAuthenticator, "authenticate", lambda self, *_, **__: authenticate(self, None))
    assert wire.ask("GET", orders).status == (401 if is_refused else 200)
    assert kept.take() == 0
    assert isinstance(backends.authenticator(), StubAuthenticator)


def test_a_file_that_is_gone_is_missed_when_it_is_looked_for(
    lake: Lake, orders: str, wire: Wire, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(wire, "GET", orders)
    Path(local(lake.load("orders")["metadata-location"])).unlink()
    monkeypatch.setattr(FILES, "_seen", type(FILES._seen)())
    kept.take()
    assert wire.ask("GET", orders).error() == (404, "NotFoundException")
    assert kept.take() == 0


def test_each_is_counted_and_noted(lake: Lake, orders: str, wire: Wire, kept: Kept) -> None:
    warm(wire, "GET", orders)
    COUNTS.take()
    DECISIONS.take()
    kept.take()
    for _ in range(4):
        wire.ask("GET", orders)
    assert kept.take() == 4
    counts, _ = COUNTS.take()
    assert [(call.route.rpartition("/")[2], call.status, number) for call, number in counts.items()] == [
        ("{table}", 200, 4)
    ]
    groups, _ = DECISIONS.take()
    assert [(key[0], key[2], group.count) for key, group in groups.items()] == [("oidc~engine", "get_metadata", 4)]


def test_a_server_that_stops_answers_as_it_does_to_others(
    orders: str, wire: Wire, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(wire, "GET", orders)
    kept.take()
    with monkeypatch.context() as patch:
        patch.setattr(health.STOPPING, "is_set", lambda: True)
        assert wire.ask("GET", orders).status == 503
    assert kept.take() == 0


def test_a_request_that_follows_at_once_waits_for_its_turn(orders: str, wire: Wire, kept: Kept) -> None:
    """Both in one piece, and the second while the first, which is known, waits for the database."""
    warm(wire, "GET", orders)
    first = f"GET {orders} HTTP/1.1\r\nHost: catalog.test\r\nauthorization: Bearer engine\r\n\r\n".encode()
    missing = first.replace(b"orders", b"others")
    kept.take()
    assert wire.exchange(first + missing).status == 200
    assert wire.exchange(b"").status == 404
    assert kept.take() == 0

    async def both() -> list[Answer]:
        wire.connection.data_received(first)
        wire.connection.data_received(missing)
        return [await wire._exchange(b"", is_head=False) for _ in range(2)]

    warm(wire, "GET", orders)
    kept.take()
    assert [answer.status for answer in run(both())] == [200, 404]
    assert kept.take() == 1


def test_half_a_request_is_not_taken_for_a_whole_one(orders: str, wire: Wire, kept: Kept) -> None:
    warm(wire, "GET", orders)
    whole = f"GET {orders} HTTP/1.1\r\nHost: catalog.test\r\nauthorization: Bearer engine\r\n\r\n".encode()
    kept.take()
    inside = b"POST /catalog/v1/config HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(whole)
    wire.connection.loop.call_soon_threadsafe(wire.connection.data_received, inside)
    assert wire.exchange(whole).status in {401, 405}
    assert kept.take() == 0, "a body was taken for a request"
    assert wire.exchange(whole).status == 200
