"""Plans: what is worth doing to a table, and what that gains, from counted files and snapshots."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.maintenance.plan import Step, plan
from pipeline.maintenance.policy import MEBIBYTE, Operation, Policy
from pipeline.maintenance.survey import DATA, POSITION_DELETES, Count, Group, Snapshot, Survey

NOW = 1_000_000_000_000
HOUR = 3_600_000
ONE, NONE = Count(1, 1000), Count()
POLICY = Policy(is_enabled=True, operations=tuple(Operation)[:-1], snapshot_age_ms=HOUR)


def state(
    groups: Sequence[Group] = (),
    *,
    manifests: Count = ONE,
    snapshots: Sequence[Snapshot] = (),
    heads: Sequence[int] = (),
    stored: Count = NONE,
    merges_deletes: bool = True,
) -> Survey:
    return Survey(merges_deletes, groups, manifests, snapshots, heads, stored)


def small(content: int, files: int, size: int = MEBIBYTE) -> Group:
    return Group(content, Count(files, files * size), Count(files, files * size))


def one(steps: Sequence[Step]) -> Step:
    (step,) = steps
    return step


def test_a_table_in_order_needs_nothing() -> None:
    assert plan(state([small(DATA, 19)]), POLICY, now_ms=NOW) == []


def test_small_files_are_counted_in_each_partition() -> None:
    step = one(plan(state([small(DATA, 2000), small(DATA, 19), small(DATA, 600)]), POLICY, now_ms=NOW))
    assert step.operation == Operation.REWRITE_DATA_FILES
    assert step.reason == "2,600 data files in 2 partitions are smaller than 384 MiB"
    assert step.gain == Count(2600 - 4 - 2)


def test_position_deletes_are_merged_where_data_files_may_share_them() -> None:
    groups = [small(POSITION_DELETES, 30)]
    assert one(plan(state(groups), POLICY, now_ms=NOW)).gain == Count(29)
    assert plan(state(groups, merges_deletes=False), POLICY, now_ms=NOW) == []


@pytest.mark.parametrize(
    ("found", "gain"),
    [(Count(49, 49_000), None), (Count(60, 60_000), 59), (Count(60, 60 * 8 * MEBIBYTE), None)],
    ids=["few", "small", "full"],
)
def test_manifests_are_merged_if_they_have_room(found: Count, gain: int | None) -> None:
    steps = plan(state(manifests=found), POLICY, now_ms=NOW)
    assert [step.gain.files if step.gain else 0 for step in steps] == ([] if gain is None else [gain])


def chain(*ages_h: float, positions: Sequence[int] = ()) -> list[Snapshot]:
    """Snapshots 1, 2, … of these ages, each the parent of the next; some with a position of the log."""
    return [
        Snapshot(number, number - 1 or None, int(NOW - age * HOUR), has_position=number in positions)
        for number, age in enumerate(ages_h, start=1)
    ]


def test_old_snapshots_expire_but_not_the_current_one() -> None:
    found = state(snapshots=chain(9, 8, 7), heads=[3], stored=Count(30, 3000))
    step = one(plan(found, POLICY, now_ms=NOW))
    assert (step.reason, step.gain, step.older_than_ms) == ("2 snapshots may expire", Count(30, 3000), NOW - HOUR)


def test_tags_and_branches_and_the_last_ones_are_kept() -> None:
    found = state(snapshots=chain(9, 8, 7, 0.5), heads=[4, 1])
    assert one(plan(found, POLICY, now_ms=NOW)).reason == "2 snapshots may expire"
    keeping = Policy(is_enabled=True, operations=POLICY.operations, snapshot_age_ms=HOUR, min_snapshots=3)
    assert plan(found, keeping, now_ms=NOW) == []


def test_the_newest_snapshot_with_a_position_of_the_log_stays() -> None:
    """A pipeline that crashed before it noted its progress reads there what it has written already."""
    found = state(snapshots=chain(9, 8, 7, 6, positions=[1, 3]), heads=[4])
    step = one(plan(found, POLICY, now_ms=NOW))
    assert step.older_than_ms == NOW - 7 * HOUR
    assert step.reason == "2 snapshots may expire"


def test_a_position_outside_the_current_history_does_not_count() -> None:
    rolled_back = [*chain(9, 8), Snapshot(3, 1, NOW - 7 * HOUR, has_position=True)]
    assert one(plan(state(snapshots=rolled_back, heads=[2]), POLICY, now_ms=NOW)).older_than_ms == NOW - HOUR


def test_orphans_are_looked_for_with_an_age() -> None:
    policy = Policy(is_enabled=True, operations=(Operation.REMOVE_ORPHAN_FILES,), orphan_age_hours=30)
    step = one(plan(state(), policy, now_ms=NOW))
    assert (step.gain, step.older_than_ms) == (None, NOW - 30 * HOUR)


def test_a_table_with_too_many_snapshots_expires_young_ones_too() -> None:
    young = [Snapshot(number, number - 1 or None, NOW - 100 + number, has_position=False) for number in range(1, 11)]
    found = state(snapshots=young, heads=[10], stored=Count(31, 4000))
    assert plan(found, POLICY, now_ms=NOW) == []
    step = one(plan(found, replace(POLICY, max_snapshots=4), now_ms=NOW))
    assert (step.reason, step.older_than_ms) == ("6 snapshots may expire", NOW - 100 + 7)
