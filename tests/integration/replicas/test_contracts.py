"""A data contract that is set through one server is kept by the other at once, while it commits all the time."""

import asyncio
from typing import Any

import pytest

from tests.integration.replicas.exchange import Answer
from tests.integration.replicas.pair import Lake, Pair, Replica

ROUNDS = 10
_AT_ONCE = 3


@pytest.fixture
def orders(lake: Lake) -> tuple[str, str]:
    """The path of a table, and that of its contract."""
    lake.add_namespace("sales")
    identifier = lake.add_table("sales", "orders")
    return lake.tables("sales", "orders"), f"{lake.managed}/table/{identifier}/contract"


def _set(name: str, number: int) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: str(number)}}]}


def test_no_commit_passes_on_the_other_server_once_a_contract_is_set(
    pair: Pair, lake: Lake, orders: tuple[str, str]
) -> None:
    table, contract = orders
    number = 0

    async def pressing(replica: Replica, until: asyncio.Event) -> list[Answer]:
        """Commits without a pause, which warm everything that could be stale afterwards."""
        nonlocal number
        found: list[Answer] = []
        while not until.is_set():
            number += 1
            found += await pair.exchange.answers([replica.call(pair.admin, "POST", table, _set("other", number))])
        return found

    async def once(setter: Replica, keeper: Replica) -> tuple[list[Answer], list[Answer]]:
        is_set = asyncio.Event()
        before = [asyncio.create_task(pressing(keeper, is_set)) for _ in range(_AT_ONCE)]
        await asyncio.sleep(0.05)
        rules = {"forbidden-properties": ["note"]}
        (answer,) = await pair.exchange.answers([setter.call(pair.admin, "PUT", contract, rules)])
        assert answer.status == 200, answer
        # sent after the contract was answered: none of these may pass, whatever the others do
        calls = [keeper.call(pair.admin, "POST", table, _set("note", each)) for each in range(1, 9)]
        after = await pair.exchange.answers(calls)
        is_set.set()
        pressed = [answer for task in before for answer in await task]
        (gone,) = await pair.exchange.answers([setter.call(pair.admin, "DELETE", contract)])
        assert gone.status == 204, gone
        return pressed, after

    for turn in range(ROUNDS):
        setter, keeper = pair.both[:: 1 if turn % 2 else -1]
        pressed, after = pair.run(once(setter, keeper))
        assert {answer.status for answer in pressed} == {200}
        assert [answer.error for answer in after] == [(409, "ContractViolatedException")] * len(after), turn
        assert keeper.ask(pair.admin, "POST", table, _set("note", 0)).status == 200
        clean = {"requirements": [], "updates": [{"action": "remove-properties", "removals": ["note"]}]}
        setter.done("POST", table, clean)
