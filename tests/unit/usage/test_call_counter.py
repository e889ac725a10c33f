import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from lakewarden.usage.call_counter import Call, Counts

WAREHOUSE = UUID(int=7)
ROUTE = "GET /catalog/v1/{prefix}/namespaces"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [7200.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_calls_of_one_kind_in_an_hour_are_one_number(clock: list[float]) -> None:
    counts = Counts()
    for clock[0] in (7200.0, 10_799.9, 10_800.0):
        counts.add(ROUTE, 200, project_id="p", warehouse_id=WAREHOUSE)
    assert counts.take() == ({Call(2, "p", WAREHOUSE, ROUTE, 200): 2, Call(3, "p", WAREHOUSE, ROUTE, 200): 1}, 0)


def test_what_differs_is_counted_apart(clock: list[float]) -> None:
    counts = Counts()
    counts.add(ROUTE, 200, project_id="p")
    counts.add(ROUTE, 404, project_id="p")
    counts.add(ROUTE, 200, project_id="q")
    taken, _ = counts.take()
    assert sorted(taken.values()) == [1, 1, 1]


def test_what_was_taken_is_forgotten_and_what_is_given_back_is_added(clock: list[float]) -> None:
    counts = Counts()
    counts.add(ROUTE, 200, project_id="p")
    taken, _ = counts.take()
    assert counts.take() == ({}, 0)
    counts.add(ROUTE, 200, project_id="p")
    counts.give_back(taken)
    assert counts.take() == ({Call(2, "p", None, ROUTE, 200): 2}, 0)


def test_memory_is_bounded_and_what_was_lost_is_known(clock: list[float]) -> None:
    counts = Counts(capacity=2)
    for project in ("p", "q", "r", "p", "s"):
        counts.add(ROUTE, 200, project_id=project)
    taken, lost = counts.take()
    assert (sorted(taken.values()), lost) == ([1, 2], 2)
    assert counts.take() == ({}, 0)


def test_no_call_of_many_threads_is_lost(clock: list[float]) -> None:
    counts = Counts()

    def call(_: int) -> None:
        for _each in range(2000):
            counts.add(ROUTE, 200, project_id="p")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    assert list(counts.take()[0].values()) == [16_000]
