"""Servers change places from round to round."""

from typing import Any

from benchmarks.runner import in_turn


def test_each_server_comes_first_in_every_other_round() -> None:
    sides: list[Any] = ["subject", "before", "peer"]
    rounds: list[list[Any]] = [[*in_turn(sides, number)] for number in range(4)]
    assert [each[0] for each in rounds] == ["subject", "peer", "subject", "peer"]
    assert all(set(each) == set(sides) for each in rounds)
