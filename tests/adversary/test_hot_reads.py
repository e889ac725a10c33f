"""A caller who stalls or overloads the hot reads delays nobody else."""

import psycopg
import pytest

from lakewarden import memory
from lakewarden.hot import coalescer
from lakewarden.hot.sessions import Row
from lakewarden.postgres.bounded import Silent
from tests.integration.catalog.lake import Lake, set_properties


def test_a_silent_database_is_waited_for_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights: control of the network between server and database."""
    lake.create_table("orders")
    for _ in range(2):  # now the caches are warm
        assert lake.client.get(lake.table("orders")).status == 200
    waits = 0

    async def silent(*_: object) -> list[Row]:
        nonlocal waits
        waits += 1
        raise Silent

    def execute(*_: object, **__: object) -> None:
        raise AssertionError("Django waits, too")

    with monkeypatch.context() as patch:
        patch.setattr(coalescer.Coalescer, "_query", silent)
        patch.setattr(psycopg.Cursor, "execute", execute)
        for path in (lake.table("orders"), lake.namespace("sales"), lake.namespace("sales", "tables")):
            answer = lake.client.get(path)
            assert (answer.error(), answer.headers["retry-after"]) == ((503, "ServiceUnavailableException"), "1")
        assert waits == 3
    assert lake.client.get(lake.table("orders")).status == 200


def test_a_reader_of_large_tables_leaves_memory_for_the_reads_of_others(
    lake: Lake, reader: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: select on `sales.orders`, which is large."""
    filler = {f"key-{number}": "x" * 250_000 for number in range(4)}
    assert lake.commit("orders", set_properties(**filler)).status == 200
    for each in (reader, lake):
        for _ in range(2):
            assert each.client.get(each.table("orders")).status == 200
    takers: list[str] = []
    try_take = memory.Budget.try_take

    def noted(self: memory.Budget, size: int, caller: str = "") -> bool:
        takers.append(caller)
        return try_take(self, size, caller)

    monkeypatch.setattr(memory.Budget, "try_take", noted)
    for each in (reader, lake):
        assert each.client.get(each.table("orders")).status == 200
    assert takers == ["oidc~reader", "oidc~engine"]
    assert memory.working().used == 0
