"""Writes that share their work have the same outcome for each caller as if they came alone."""

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from catalog.models import Namespace
from catalog.services import namespaces
from catalog.services.commit_writer import file_threads, swaps
from catalog.services.creation_writer import additions
from lakewarden import asgi
from lakewarden.hot import connections
from lakewarden.hot.statements import Statement
from tenants.models import Warehouse
from tests.adversary.gates import SOON_S, Gate, wait_until, waiting, waiting_creations
from tests.integration.catalog.lake import SCHEMA, Lake, set_properties
from tests.servers import asgi_client
from tests.servers.asgi_client import Answer, AsgiClient


@pytest.fixture
def orders(lake: Lake) -> Lake:
    """The warehouse with the table `sales.orders`, to which `engine` has committed."""
    assert lake.create_table("orders").status == 200
    assert lake.commit("orders", set_properties(first="1")).status == 200
    return lake


def test_a_queue_at_a_table_does_not_keep_its_warehouse_as_it_was(
    orders: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: modify on a table, to which they commit continuously while its warehouse is changed."""
    gate, names = Gate(monkeypatch), []
    store = file_threads.store

    async def noting(warehouse: Warehouse, files: Any) -> Any:
        names.append(warehouse.name)
        return await store(warehouse, files)

    monkeypatch.setattr(file_threads, "store", noting)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(orders.commit, "orders", set_properties(a="1"))
        wait_until(lambda: gate.begun == 1)
        renamed = admin.post(f"/management/v1/warehouse/{orders.warehouse_id}/rename", {"new-name": "renamed"})
        assert renamed.status in {200, 204}, renamed.body
        second = pool.submit(orders.commit, "orders", set_properties(b="1"))
        wait_until(waiting)
        gate.let_through(2)
        assert {first.result(SOON_S).status, second.result(SOON_S).status} == {200}
    assert names == ["lake", "renamed"]


def test_a_database_that_lets_nobody_in_any_more_leaves_no_outcome_unknown(
    orders: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: modify on a table, and as many sessions of the database as it has."""

    async def refused() -> Any:
        raise psycopg.OperationalError("connection failed: FATAL: sorry, too many clients already")

    carry_out = swaps.SWAPS._carry_out

    async def alone(chains: Any) -> Any:
        await connections.close_all()
        with monkeypatch.context() as patch:
            patch.setattr(connections, "_open", refused)
            return await carry_out(chains)

    monkeypatch.setattr(swaps.SWAPS, "_carry_out", alone)
    answer = orders.commit("orders", set_properties(a="1"))
    assert answer.status == 200, answer.body


def test_a_name_that_is_being_taken_does_not_hold_up_the_creations_of_others(
    orders: Lake, outsider: Lake, database_url: str
) -> None:
    """Rights: create on `outside`, where a long transaction of theirs takes names."""
    for each, within in ((orders, "sales"), (outsider, "outside")):
        for name in ("warm", "warmer"):
            assert each.create_table(name, within=within).status == 200
    outside = Namespace.objects.get(path=["outside"])
    with ThreadPoolExecutor(20) as pool, psycopg.connect(database_url) as taking:
        taking.execute(
            """
            insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location,
                                 metadata_location, version, created_at, updated_at)
            select gen_random_uuid(), warehouse_id, namespace_id, kind, 'taken', 'taken', gen_random_uuid(), location || 'x',
                   metadata_location, 1, now(), now() from tabular where namespace_id = %s limit 1
            """,
            [outside.id],
        )
        storm = [pool.submit(outsider.create_table, "taken", within="outside") for _ in range(20)]
        time.sleep(0.5)
        waits = []
        for number in range(5):
            begun = time.monotonic()
            assert orders.create_table(f"t{number}").status == 200
            waits.append(time.monotonic() - begun)
        assert not all(each.done() for each in storm)
        taking.rollback()
        assert {each.result(4 * SOON_S).status for each in storm} <= {200, 409, 503}
    assert max(waits) < 5, waits


@pytest.mark.parametrize("is_hot", [True, False])
def test_a_warehouse_that_moves_takes_no_namespace_of_where_it_was(
    engine: AsgiClient,
    warehouse: Warehouse,
    admin: AsgiClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_hot: bool,
) -> None:
    """Rights: create on an empty warehouse, whose base path is changed meanwhile."""
    lake = Lake(engine, str(warehouse.id))
    for name in ("first", "second"):
        assert lake.create_namespace(name).status == 200
        assert lake.client.delete(lake.namespace(name)).status == 204
    assert lake.client.get(lake.path("namespaces")).status == 200
    moved: list[Answer] = []

    def move() -> None:
        profile = {"type": "local", "base-path": str(tmp_path / "other")}
        moved.append(admin.post(f"/management/v1/warehouse/{lake.warehouse_id}/storage", {"storage-profile": profile}))

    carry_out = additions.NAMESPACES._carry_out

    async def after_the_move(asked: Any) -> Any:
        await asyncio.to_thread(move)
        return await carry_out(asked)

    def room_after_the_move(_: Warehouse) -> bool:
        if not moved:
            move()
        return True

    if is_hot:
        monkeypatch.setattr(additions.NAMESPACES, "_carry_out", after_the_move)
    else:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
        monkeypatch.setattr(namespaces, "has_room", room_after_the_move)
    answer = lake.create_namespace("sales")
    assert [each.status for each in moved] == [200]
    if answer.status == 200:
        assert answer.json()["properties"]["location"].startswith(f"file://{tmp_path}/other/")
    else:
        assert answer.error() == (503, "ServiceUnavailableException")


def test_a_key_twice_in_a_batch_does_not_take_it_apart(
    orders: Lake, outsider: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: create on `outside`."""
    for each, within in ((orders, "sales"), (outsider, "outside")):
        for name in ("warm", "warmer"):
            assert each.create_table(name, within=within).status == 200
    sent: list[int] = []
    fetch_one, go_on = Statement.fetch_one, asyncio.Event()

    async def counting(self: Statement, *arguments: Any) -> Any:
        sent.append(1)
        if len(sent) <= 2:
            await go_on.wait()
        return await fetch_one(self, *arguments)

    monkeypatch.setattr(Statement, "fetch_one", counting)

    def twice(name: str) -> Answer:
        body = {"name": name, "schema": SCHEMA}
        return outsider.client.post(outsider.namespace("outside", "tables"), body, headers={"idempotency-key": key})

    with ThreadPoolExecutor(30) as pool:
        first = []
        for number in (1, 2):  # as many statements as may run at a time
            first.append(pool.submit(orders.create_table, f"first{number}"))
            wait_until(lambda: len(sent) == len(first))
        key = str(uuid4())
        stormed = [pool.submit(twice, f"t{number}") for number in range(10)]
        others = [pool.submit(orders.create_table, f"t{number}") for number in range(10)]
        wait_until(lambda: waiting_creations() >= 20)
        asgi_client._loop().call_soon_threadsafe(go_on.set)
        assert {each.result(SOON_S).status for each in [*first, *others]} == {200}
        assert Counter(each.result(SOON_S).status for each in stormed) == {200: 1, 400: 9}
    assert len(sent) <= 8, len(sent)
