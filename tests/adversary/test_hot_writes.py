"""Writes on the event loop allow no caller more than writes through Django."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import islice
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from catalog.api.hot import commits, write
from catalog.models import Tabular
from catalog.services import pointer
from catalog.services.commit_writer.writer import commit
from catalog.services.pointer import Stored
from lakewarden import asgi
from lakewarden.authz.database import DatabaseAuthorizer
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.authz.model import Privilege
from lakewarden.errors import Unavailable
from lakewarden.fair_shares import Shares
from lakewarden.http import request_threads
from lakewarden.idempotency.models import IdempotencyRecord
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.integration.catalog.lake import Lake, set_properties
from tests.servers import asgi_client
from tests.servers.asgi_client import Answer, AsgiClient

SOON_S = 10


@pytest.fixture
def orders(lake: Lake) -> Lake:
    """The warehouse with the table `sales.orders`, to which `engine` has committed."""
    assert lake.create_table("orders").status == 200
    assert lake.commit("orders", set_properties(first="1")).status == 200
    return lake


@contextmanager
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Commits on the event loop do not end before this block ends; yields those that have begun."""
    begun: list[object] = []
    go_on = asyncio.Event()

    async def waiting(one: pointer.Commit) -> Stored | None:
        begun.append(one)
        await go_on.wait()
        return await commit(one)

    monkeypatch.setattr(commits, "commit", waiting)
    try:
        yield begun
    finally:
        asgi_client._loop().call_soon_threadsafe(go_on.set)


def properties(lake: Lake) -> dict[str, str]:
    found: dict[str, str] = lake.load("orders")["metadata"]["properties"]
    return found


def test_a_hidden_table_is_committed_to_as_a_missing_one(orders: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    answers = [outsider.commit(name, set_properties(a="1")) for name in ("orders", "absent") for _ in range(3)]
    assert {answer.error() for answer in answers} == {(404, "NoSuchTableException")}
    assert len({answer.message().replace("absent", "orders") for answer in answers}) == 1
    assert "a" not in properties(orders)


def test_who_may_only_read_does_not_commit(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`."""
    for _ in range(3):
        assert reader.load("orders")
        assert reader.commit("orders", set_properties(a="1")).error() == (403, "ForbiddenException")
    assert "a" not in properties(lake)


def test_a_revoked_right_is_felt_by_the_very_next_commit(orders: Lake) -> None:
    """Rights: modify on the warehouse, revoked."""
    GrantRow.objects.filter(principal_id="oidc~engine").delete()
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    assert orders.commit("orders", set_properties(a="1")).error() == (404, "NoSuchTableException")
    assert Tabular.objects.get(name="orders").version == 2


@pytest.mark.parametrize("size", [1, 2, 1023, 16 * 1024, 16 * 1024 + 1, 64 * 1024, 64 * 1024 + 1, 200_000])
@pytest.mark.parametrize("filler", [b" ", b"[", b'{"a":', b"\x00", b"9", b"{},"])
def test_bodies_of_all_sizes_are_answered(orders: Lake, size: int, filler: bytes) -> None:
    """Rights: modify on the table."""
    body = (filler * (size // len(filler) + 1))[:size]
    answer = orders.client.call("POST", orders.table("orders"), body=body)
    assert answer.error() == (400, "BadRequestException")
    assert orders.commit("orders", set_properties(size=str(size))).status == 200


def test_one_key_of_two_requests_at_once_is_used_once(orders: Lake) -> None:
    """Rights: modify on the table."""
    headers = {"idempotency-key": str(uuid4())}
    body = {"requirements": [], "updates": [set_properties(a="1")]}
    together = threading.Barrier(8)

    def send(_: int) -> Answer:
        together.wait(SOON_S)
        return orders.client.post(orders.table("orders"), body, headers=headers)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.json()["metadata-location"] for answer in answers}) == 1
    assert Tabular.objects.get(name="orders").version == 3
    assert IdempotencyRecord.objects.count() == 1


def test_a_flood_of_commits_leaves_room_for_those_of_others(
    orders: Lake, grant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: modify on the table."""
    grant("calm", "modify")
    calm = orders.as_user("calm")
    for each in (orders, calm):  # now the caller's decisions are cached
        assert each.commit("orders", set_properties(b="1")).status == 200
    room = Shares(16, percent=75)
    monkeypatch.setattr(write, "IN_PROGRESS", room)
    with ThreadPoolExecutor(30) as pool:
        with stuck(monkeypatch):
            flood = [pool.submit(orders.commit, "orders", set_properties(a=str(each))) for each in range(24)]
            refused = [each.result(SOON_S) for each in islice(as_completed(flood, SOON_S), 12)]
            assert {each.error() for each in refused} == {(503, "ServiceUnavailableException")}
            assert "12 in progress, 0 waiting; 12 of them are yours" in refused[0].message()
            other = pool.submit(calm.commit, "orders", set_properties(b="2"))
            with pytest.raises(TimeoutError):
                other.result(0.5)  # the request was admitted
        assert other.result(SOON_S).status == 200
        assert Counter(each.result(SOON_S).status for each in flood) == {200: 12, 503: 12}
    assert room.taken == 0


def test_a_client_that_goes_away_changes_what_it_sent_completely_or_nothing(
    orders: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: modify on the table."""
    body = json.dumps({"requirements": [], "updates": [set_properties(a="1")]}).encode()
    for sent, expected in ((body[:20], None), (body, "1")):
        parts: list[dict[str, Any]] = [{"type": "http.request", "body": sent, "more_body": sent != body}]

        async def receive(parts: list[dict[str, Any]] = parts) -> dict[str, Any]:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            """The client does not read the answer."""

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": orders.table("orders"),
            "query_string": b"",
            "headers": [
                (b"host", b"lake.test"),
                (b"authorization", b"Bearer engine"),
                (b"content-length", str(len(body)).encode()),
            ],
            "client": ("192.0.2.7", 40000),
        }
        asgi_client.run(asgi.application(scope, receive, send))
        assert properties(orders).get("a") == expected
    assert write.IN_PROGRESS.taken == 0


def test_an_inactive_warehouse_is_committed_to_no_more(orders: Lake, admin: AsgiClient) -> None:
    """Rights: modify on the warehouse."""
    assert admin.post(f"/management/v1/warehouse/{orders.warehouse_id}/deactivate").status in {200, 204}
    assert orders.commit("orders", set_properties(a="1")).error() == (404, "NoSuchWarehouseException")
    assert admin.post(f"/management/v1/warehouse/{orders.warehouse_id}/activate").status in {200, 204}
    assert orders.commit("orders", set_properties(a="2")).status == 200


def test_commits_that_wait_for_a_lock_hold_up_nobody_else(orders: Lake, outsider: Lake, database_url: str) -> None:
    """Rights: create on `outside`, and a table there."""
    assert outsider.create_table("mine", within="outside").status == 200
    for each, table, within in ((outsider, "mine", "outside"), (orders, "orders", "sales")):
        assert each.commit(table, set_properties(a="1"), within=within).status == 200
    with ThreadPoolExecutor(40) as pool, psycopg.connect(database_url) as holder:
        assert holder.execute("select id from tabular where name = 'mine' for update").fetchall()
        storm = [pool.submit(outsider.commit, "mine", set_properties(a="2"), within="outside") for _ in range(40)]
        wait_until(lambda: write.IN_PROGRESS.held_by("oidc~outsider") == 40)
        for number in range(20):
            assert orders.commit("orders", set_properties(a=str(number))).status == 200
        assert request_threads.THREADS._running.taken == 0
        assert not any(each.done() for each in storm)
        holder.rollback()
        assert {each.result(SOON_S).status for each in storm} <= {200, 503}
    assert write.IN_PROGRESS.taken == 0


def test_rights_that_nobody_knows_yet_are_found_once_for_all_who_wait(
    orders: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: modify on the table. Each commit went through Django, where all of them waited for the table's row."""
    found: list[object] = []
    privileges, call = DatabaseAuthorizer.privileges, asgi._bridge.call

    def finding(self: DatabaseAuthorizer, *asked: Any) -> frozenset[Privilege]:
        found.append(asked)
        time.sleep(0.2)  # the others come meanwhile
        return privileges(self, *asked)

    through_django: list[object] = []

    def calling(*request: Any) -> Any:
        through_django.append(request)
        return call(*request)

    monkeypatch.setattr(DatabaseAuthorizer, "privileges", finding)
    monkeypatch.setattr(asgi._bridge, "call", calling)
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    with ThreadPoolExecutor(16) as pool:
        answers = pool.map(lambda number: orders.commit("orders", set_properties(**{f"a{number}": "1"})), range(16))
        assert {each.status for each in answers} == {200}
    assert len(found) == 1
    assert not through_django


def test_rights_that_cannot_be_found_out_are_a_503(orders: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights: modify on the table."""

    def failing(*_: object) -> frozenset[Privilege]:
        raise Unavailable("The authorizer does not answer")

    projects.bump_epoch(DEFAULT_PROJECT_ID)
    with monkeypatch.context() as patch:
        patch.setattr(DatabaseAuthorizer, "privileges", failing)
        assert orders.commit("orders", set_properties(a="1")).error() == (503, "ServiceUnavailableException")
    assert orders.commit("orders", set_properties(b="1")).status == 200
    assert "a" not in properties(orders)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
