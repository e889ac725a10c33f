"""Which faults a soak makes: all kinds in a new order each round, and only those that its stack can have."""

import random
from itertools import islice

import pytest

from tests.soak.faults import KINDS, TOGETHER, chosen


@pytest.mark.parametrize("several", [False, True])
def test_processes_are_killed_where_there_are_several(*, several: bool) -> None:
    names = {each.name for each in KINDS if several or not each.needs_processes}
    rounds = chosen(random.Random(7), small_disk=True, several_processes=several)  # noqa: S311
    singles = {kinds[0].name for kinds in islice(rounds, len(names) + 2) if len(kinds) == 1}
    assert singles == names
    assert ("kill-process" in singles) is several


def test_each_pair_is_of_known_kinds() -> None:
    assert {name for pair in TOGETHER for name in pair} <= {each.name for each in KINDS}
