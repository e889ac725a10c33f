"""A grant or a revocation counts for the next request on either server: thousands of times, on every route.

LAKEWARDEN_TEST_REVOCATIONS says how many revocations there are, each looked for on both servers (1,000).
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice

import pytest

from tests.integration.replicas.exchange import Answer, Call
from tests.integration.replicas.pair import PEOPLE, Lake, Pair, Person, Replica

REVOCATIONS = int(os.environ.get("LAKEWARDEN_TEST_REVOCATIONS", "1000"))
_PRESSING = 4
"""People who ask each server without a pause while they lose their rights."""
_NOTHING: dict[str, object] = {"requirements": [], "updates": []}
_TABLE = "orders"


@dataclass(frozen=True)
class Place:
    """`grants` is where rights on the object are changed; with `privilege` one may ask `reads`."""

    grants: str
    privilege: str
    reads: tuple[tuple[str, str], ...]


@dataclass
class Tally:
    """What the requests of a run were answered; `stale` are yes to the unauthorized and no to the authorized."""

    asked: Counter[str]
    stale: list[tuple[str, Call, int]]

    def add(self, what: str, calls: list[Call], answers: list[Answer], *, refused: bool) -> None:
        self.asked[what] += len(calls)
        wrong = [
            (call, answer.status) for call, answer in zip(calls, answers, strict=True) if _is_no(answer) != refused
        ]
        self.stale += [(what, call, status) for call, status in wrong]


def _is_no(answer: Answer) -> bool:
    assert answer.status in {200, 204, 403, 404}, answer
    return answer.status in {403, 404}


def places(lake: Lake) -> list[Place]:
    """A table, the namespace that it is in, and the warehouse."""
    sales = lake.add_namespace("sales")
    table_id = lake.add_table("sales", _TABLE)
    table, tables, namespaces = lake.tables("sales", _TABLE), lake.tables("sales"), lake.path("namespaces")
    return [
        Place(f"{lake.managed}/table/{table_id}/grants", "select", (("GET", table), ("HEAD", table), ("GET", tables))),
        Place(
            f"{lake.managed}/namespace/{sales}/grants",
            "describe",
            (("GET", tables), ("GET", table), ("HEAD", table), ("GET", f"{namespaces}/sales")),
        ),
        Place(f"{lake.managed}/grants", "describe", (("GET", lake.config), ("GET", namespaces), ("GET", table))),
    ]


async def once(pair: Pair, place: Place, *, granter: Replica, revoker: Replica, tally: Tally) -> None:
    """Everybody is granted the right through one server, and loses it through the other."""
    entries = [person.entry(place.privilege) for person in pair.people]
    asked = [
        replica.call(person, *read)
        for replica in pair.both
        for person, read in zip(pair.people, cycle(place.reads), strict=False)
    ]
    await _change(pair, granter.call(pair.admin, "POST", place.grants, {"writes": entries}))
    tally.add("granted", asked, await pair.exchange.answers(asked), refused=False)
    revoked_at: list[float] = []
    pressed = asked[:_PRESSING] + asked[PEOPLE : PEOPLE + _PRESSING]
    pressing = [asyncio.create_task(_press(pair, call, revoked_at, tally)) for call in pressed]
    await _change(pair, revoker.call(pair.admin, "POST", place.grants, {"deletes": entries}))
    revoked_at.append(time.monotonic())
    tally.add("revoked", asked, await pair.exchange.answers(asked), refused=True)
    await asyncio.gather(*pressing)


async def _change(pair: Pair, call: Call) -> None:
    assert (await pair.exchange.answer(call)).status == 204


async def _press(pair: Pair, call: Call, revoked_at: list[float], tally: Tally) -> None:
    """Ask again and again, and twice more when the right is gone: only then the answer must be no."""
    left = 2
    while left:
        is_gone = bool(revoked_at)
        left -= is_gone
        answer = await pair.exchange.answer(call)
        if is_gone:
            tally.add("under pressure", [call], [answer], refused=True)


@pytest.mark.timeout(60 + REVOCATIONS // 10)
def test_a_right_is_there_at_once_and_gone_at_once(pair: Pair, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    tally, start = Tally(Counter(), []), time.monotonic()
    objects = places(lake)
    turns = cycle([(place, *way) for way in (pair.both, pair.both[::-1]) for place in objects])
    for place, granter, revoker in islice(turns, REVOCATIONS // PEOPLE):
        pair.run(once(pair, place, granter=granter, revoker=revoker, tally=tally))
    with capsys.disabled():
        print(f"\n{dict(tally.asked)}, stale: {len(tally.stale)}, {time.monotonic() - start:.0f} s")  # noqa: T201
    assert tally.stale == []
    assert tally.asked["revoked"] == 2 * PEOPLE * (REVOCATIONS // PEOPLE) > 0


@dataclass(frozen=True)
class Case:
    """A request that needs `privilege` on `on`, what it is answered with it, and without."""

    on: str
    privilege: str
    method: str
    path: Callable[[Lake], str]
    granted: int = 200
    refused: int = 404
    keeps: str = ""
    """A right on the namespace that the caller keeps, so that they still see objects that they may not change."""


def _table(lake: Lake) -> str:
    return lake.tables("sales", _TABLE)


CASES = {
    "load table": Case("table", "select", "GET", _table),
    "head table": Case("table", "select", "HEAD", _table, granted=204),
    "list tables, only this one": Case("table", "describe", "GET", lambda lake: lake.tables("sales")),
    "list tables": Case("namespace", "describe", "GET", lambda lake: lake.tables("sales")),
    "list views": Case("namespace", "describe", "GET", lambda lake: lake.path("namespaces", "sales", "views")),
    "load namespace": Case("namespace", "describe", "GET", lambda lake: lake.path("namespaces", "sales")),
    "head namespace": Case("table", "select", "HEAD", lambda lake: lake.path("namespaces", "sales"), granted=204),
    "list namespaces": Case("warehouse", "describe", "GET", lambda lake: lake.path("namespaces")),
    "list namespaces, only this one": Case("namespace", "select", "GET", lambda lake: lake.path("namespaces")),
    "config": Case("warehouse", "select", "GET", lambda lake: lake.config),
    "config by a right on a table": Case("table", "select", "GET", lambda lake: lake.config),
    "commit": Case("table", "write", "POST", _table),
    "commit, still seen": Case("table", "write", "POST", _table, refused=403, keeps="describe"),
    "credentials, still seen": Case(
        "table", "select", "GET", lambda lake: _table(lake) + "/credentials", refused=403, keeps="describe"
    ),
    "warehouse": Case("warehouse", "describe", "GET", lambda lake: lake.managed),
}


@pytest.mark.parametrize("name", CASES)
def test_by_every_route_on_both_servers(pair: Pair, lake: Lake, name: str) -> None:
    case = CASES[name]
    on_table, on_namespace, on_warehouse = (place.grants for place in places(lake))
    grants = {"table": on_table, "namespace": on_namespace, "warehouse": on_warehouse}[case.on]
    path, body = case.path(lake), _NOTHING if case.method == "POST" else None

    def answered(person: Person) -> tuple[int, int]:
        return pair.statuses(person, case.method, path, body)

    for number, (granter, revoker) in enumerate([*[pair.both] * 3, *[pair.both[::-1]] * 3]):
        person = pair.people[number]
        if case.keeps:
            granter.done("POST", on_namespace, {"writes": [person.entry(case.keeps)]})
        assert answered(person) == (case.refused, case.refused)
        granter.done("POST", grants, {"writes": [person.entry(case.privilege)]})
        for _ in range(3):  # the first fills what the next find
            assert answered(person) == (case.granted, case.granted)
        revoker.done("POST", grants, {"deletes": [person.entry(case.privilege)]})
        assert answered(person) == (case.refused, case.refused)
