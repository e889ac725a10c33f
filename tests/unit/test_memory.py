"""The memory for large requests: reserved, waited for, released."""

import threading
import time

import pytest

from lakewarden import memory
from lakewarden.errors import Unavailable
from lakewarden.memory import Budget, held_by_request, hold

MIB = 1024 * 1024


def test_more_than_there_is_is_given_to_who_is_alone() -> None:
    budget = Budget(10)
    budget.take(100)
    assert not budget.try_take(1)
    budget.give_back(100)
    assert budget.used == 0
    assert budget.try_take(10)


def test_who_waits_goes_on_when_there_is_room() -> None:
    budget = Budget(10)
    budget.take(8)
    waiting = threading.Thread(target=budget.take, args=(5,))
    waiting.start()
    budget.give_back(8)
    waiting.join(60)
    assert budget.used == 5


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PATIENCE_S", 0.05)
    budget = Budget(10)
    budget.take(8)
    with pytest.raises(Unavailable):
        budget.take(5)
    assert budget.used == 8


def test_only_a_few_wait() -> None:
    budget = Budget(10)
    budget.take(8)
    waiting = [threading.Thread(target=budget.take, args=(2 + number,)) for number in range(2, 2 + memory.MOST_WAITING)]
    for each in waiting:
        each.start()
    deadline = time.monotonic() + 60
    while budget._places.taken < memory.MOST_WAITING:
        assert time.monotonic() < deadline
    asked = time.monotonic()
    with pytest.raises(Unavailable):
        budget.take(5)
    assert time.monotonic() - asked < memory.PATIENCE_S
    budget.give_back(8)
    budget.give_back(0)
    for each in waiting:
        each.join(0.2)
        budget.give_back(budget.used)
    for each in waiting:
        each.join(60)


def test_one_caller_leaves_room_and_places_for_others() -> None:
    budget = Budget(100, percent=75)
    budget.take(1000, "storm")
    assert not budget.try_take(1, "storm")
    waiting = [threading.Thread(target=budget.take, args=(75, "storm")) for _ in range(3)]
    for each in waiting:
        each.start()
    deadline = time.monotonic() + 60
    while budget._places.taken < 3:
        assert time.monotonic() < deadline
    with pytest.raises(Unavailable):
        budget.take(75, "storm")
    budget.take(25, "somebody")
    assert budget.used == 100
    budget.give_back(25, "somebody")
    while any(each.is_alive() for each in waiting):
        budget.give_back(budget.used, "storm")
        time.sleep(0.01)


def test_a_request_holds_the_most_of_each_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(8 * MIB)
    monkeypatch.setattr(memory, "working", lambda: budget)
    with held_by_request("somebody"):
        hold("a", 1 * MIB)
        hold("a", 1 * MIB)
        hold("a", 2 * MIB)
        hold("b", 1 * MIB)
        hold("small", 1000)
        assert budget.used == 3 * MIB
    assert budget.used == 0
    hold("a task", 4 * MIB)
    assert budget.used == 0
