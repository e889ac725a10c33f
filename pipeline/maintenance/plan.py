"""What would be done to a table, and what that would gain: from its state and its policy alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.maintenance.policy import MEBIBYTE, Operation, Policy
from pipeline.maintenance.survey import DATA, POSITION_DELETES, Count, Survey

MANIFEST_BYTES = 8 * MEBIBYTE
"""The size that Iceberg gives to manifests (`commit.manifest.target-size-bytes`)."""


@dataclass(frozen=True, slots=True)
class Step:
    """`gain` is what goes away at most, None if that is not known; what is younger than `older_than_ms` stays."""

    operation: Operation
    reason: str
    gain: Count | None
    older_than_ms: int | None = None


def plan(state: Survey, policy: Policy, *, now_ms: int) -> list[Step]:
    """The operations that are worth doing now, in their order. Whether they are due is not asked here."""
    steps = [_STEPS[each](state, policy, now_ms) for each in policy.operations]
    return [each for each in steps if each is not None]


def _data_files(state: Survey, policy: Policy, _now_ms: int) -> Step | None:
    groups = [each for each in state.groups if each.content == DATA and each.small.files >= policy.small_files]
    if not groups:
        return None
    small = sum((each.small for each in groups), Count())
    left = sum(max(1, -(-each.small.bytes // policy.target_bytes)) for each in groups)
    places = "partition" if len(groups) == 1 else "partitions"
    limit = f"{policy.small_bytes / MEBIBYTE:,.0f} MiB"
    reason = f"{small.files:,} data files in {len(groups):,} {places} are smaller than {limit}"
    return Step(Operation.REWRITE_DATA_FILES, reason, Count(small.files - left))


def _position_deletes(state: Survey, policy: Policy, _now_ms: int) -> Step | None:
    groups = [
        each for each in state.groups if each.content == POSITION_DELETES and each.all.files >= policy.delete_files
    ]
    if not groups or not state.merges_deletes:
        return None
    found = sum((each.all for each in groups), Count())
    return Step(
        Operation.REWRITE_POSITION_DELETES,
        f"{found.files:,} files of position deletes can be merged",
        Count(found.files - len(groups)),
    )


def _manifests(state: Survey, policy: Policy, _now_ms: int) -> Step | None:
    left = max(1, -(-state.manifests.bytes // MANIFEST_BYTES))
    if state.manifests.files < policy.manifests or left >= state.manifests.files:
        return None
    reason = f"{state.manifests.files:,} manifests have room in {left:,}"
    return Step(Operation.REWRITE_MANIFESTS, reason, Count(state.manifests.files - left))


def _snapshots(state: Survey, policy: Policy, now_ms: int) -> Step | None:
    older_than = now_ms - policy.snapshot_age_ms
    if len(state.history) > policy.max_snapshots:
        older_than = max(older_than, state.history[policy.max_snapshots - 1].committed_ms)
    if (kept := state.position_kept_ms) is not None:
        older_than = min(older_than, kept)
    count = state.expirable(older_than_ms=older_than, keep=policy.min_snapshots)
    if count == 0:
        return None
    most = Count(state.stored.files - state.live.files, state.stored.bytes - state.live.bytes)
    return Step(Operation.EXPIRE_SNAPSHOTS, f"{count:,} snapshots may expire", most, older_than_ms=older_than)


def _orphans(_state: Survey, policy: Policy, now_ms: int) -> Step:
    older_than = now_ms - policy.orphan_age_hours * 3_600_000
    reason = f"files older than {policy.orphan_age_hours} hours that no snapshot refers to"
    return Step(Operation.REMOVE_ORPHAN_FILES, reason, None, older_than_ms=older_than)


_STEPS: Mapping[Operation, Callable[[Survey, Policy, int], Step | None]] = {
    Operation.REWRITE_DATA_FILES: _data_files,
    Operation.REWRITE_POSITION_DELETES: _position_deletes,
    Operation.REWRITE_MANIFESTS: _manifests,
    Operation.EXPIRE_SNAPSHOTS: _snapshots,
    Operation.REMOVE_ORPHAN_FILES: _orphans,
}
