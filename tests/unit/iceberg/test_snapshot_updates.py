"""add-snapshot, set-snapshot-ref, remove-snapshot-ref, remove-snapshots, and the logs that follow from them."""

import json

import pytest

from catalog.iceberg.tables import TableMetadata
from lakewarden.errors import BadRequest, InvalidArgument, StaleUpdate, ValidationFailed
from tests.unit.iceberg.documents import NOW, Document, add, appended, commit, create, document, ref, snapshot


def log(made: Document) -> list[tuple[int, int]]:
    return [(each["snapshot-id"], each["timestamp-ms"] - NOW) for each in made["snapshot-log"]]


def drop(*snapshot_ids: int) -> Document:
    return {"action": "remove-snapshots", "snapshot-ids": list(snapshot_ids)}


def test_add_snapshot_appends_it_as_it_was_sent() -> None:
    big = add(1, **{"x": {"n": 12345678901234567890, "f": 1.5}, "schema-id": 0})
    made = document(commit(create(), big))
    assert made["snapshots"] == [big["snapshot"]]
    assert made["last-sequence-number"] == 1
    assert made["current-snapshot-id"] == -1


def test_add_snapshot_keeps_longs_exactly() -> None:
    made = document(commit(create(), add(2**63 - 1, sequence=1, **{"timestamp-ms": NOW}), ref(2**63 - 1)))
    assert made["current-snapshot-id"] == 2**63 - 1


def test_set_main_makes_its_snapshot_current_and_logs_it_at_the_snapshots_time() -> None:
    made = document(commit(create(), add(1), ref(1)))
    assert made["refs"] == {"main": {"snapshot-id": 1, "type": "branch"}}
    assert made["current-snapshot-id"] == 1
    assert log(made) == [(1, 1)]


def test_set_main_back_to_an_older_snapshot_is_logged_at_the_commits_time() -> None:
    made = document(commit(appended(1, 2), ref(1)))
    assert log(made) == [(1, 1), (2, 2), (1, 1000)]


def test_what_was_current_only_within_a_commit_is_not_logged() -> None:
    made = document(commit(create(), add(1), ref(1), add(2, **{"parent-snapshot-id": 1}), ref(2)))
    assert log(made) == [(2, 2)]
    assert [each["snapshot-id"] for each in made["snapshots"]] == [1, 2]


def test_add_snapshot_refuses_an_id_that_exists() -> None:
    with pytest.raises(ValidationFailed, match="Snapshot already exists for id: 1"):
        commit(appended(1), add(1, sequence=5))


@pytest.mark.parametrize("sequence", [0, 1, 2])
def test_add_snapshot_built_on_an_older_state_is_stale(sequence: int) -> None:
    with pytest.raises(
        StaleUpdate, match=f"Cannot add snapshot with sequence number {sequence} older than last sequence number 2"
    ):
        commit(appended(1, 2), add(3, sequence=sequence, **{"parent-snapshot-id": 1}))


def test_add_snapshot_without_parent_may_repeat_the_last_sequence_number_but_not_fall_behind() -> None:
    assert document(commit(appended(1, 2), add(3, sequence=2)))["last-sequence-number"] == 2
    with pytest.raises(StaleUpdate, match="sequence number 1 older than last sequence number 2"):
        commit(appended(1, 2), add(3, sequence=1))


@pytest.mark.parametrize("missing", ["snapshot-id", "timestamp-ms", "manifest-list", "summary"])
def test_add_snapshot_names_a_missing_member(missing: str) -> None:
    found = snapshot(1)
    del found[missing]
    with pytest.raises(BadRequest, match=rf"updates\[0\] \(add-snapshot\): snapshot: .*`{missing}`"):
        commit(create(), {"action": "add-snapshot", "snapshot": found})


def test_add_snapshot_needs_an_operation_and_an_id_of_its_own() -> None:
    with pytest.raises(BadRequest, match=r"missing required field `operation` - at `\$.summary`"):
        commit(create(), add(1, summary={}))
    with pytest.raises(InvalidArgument, match="Invalid snapshot id -1"):
        commit(create(), add(-1, sequence=1))


def test_v1_snapshots_have_no_sequence_number_and_may_list_manifests() -> None:
    old = {"snapshot-id": 1, "timestamp-ms": NOW, "manifests": ["s3://b/m.avro"]}
    made = document(commit(create(1), {"action": "add-snapshot", "snapshot": old}))
    assert made["snapshots"] == [old]
    with pytest.raises(InvalidArgument, match="Sequence number must be 0 in v1: 1"):
        commit(create(1), add(1))
    with pytest.raises(BadRequest, match="missing required field `manifest-list`"):
        commit(create(1), {"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "timestamp-ms": NOW}})


def test_v3_snapshots_take_row_ids_and_move_next_row_id_behind_them() -> None:
    made = commit(create(3), add(1, **{"first-row-id": 0, "added-rows": 7}))
    assert document(made)["next-row-id"] == 7
    # a gap is allowed, but the next snapshot must not get ids that are taken
    assert document(commit(made, add(2, **{"first-row-id": 100, "added-rows": 5})))["next-row-id"] == 105


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ({}, ValidationFailed, "Cannot add a snapshot: first-row-id is null"),
        ({"first-row-id": 6, "added-rows": 1}, StaleUpdate, "first-row-id is behind table next-row-id: 6 < 7"),
        ({"first-row-id": 7}, InvalidArgument, r"Invalid added-rows \(required when first-row-id is set\)"),
        ({"first-row-id": -1, "added-rows": 1}, InvalidArgument, r"Invalid first-row-id \(cannot be negative\)"),
        ({"first-row-id": 7, "added-rows": -1}, InvalidArgument, r"Invalid added-rows \(cannot be negative\)"),
        ({"first-row-id": 7, "added-rows": 2**63 - 1}, InvalidArgument, "row ids end at"),
    ],
)
def test_v3_snapshots_with_wrong_row_ids_are_refused(rows: Document, error: type[BadRequest], message: str) -> None:
    base = commit(create(3), add(1, **{"first-row-id": 0, "added-rows": 7}))
    with pytest.raises(error, match=message):
        commit(base, add(2, **rows))


def test_set_snapshot_ref_stores_retention_and_unknown_members() -> None:
    retention = {"min-snapshots-to-keep": 2, "max-snapshot-age-ms": 3, "max-ref-age-ms": 4}
    made = document(commit(appended(1), ref(1, "dev", **retention, color="red")))
    assert made["refs"]["dev"] == {"snapshot-id": 1, "type": "branch", **retention, "color": "red"}


def test_set_snapshot_ref_drops_nulls_and_reads_types_in_any_case() -> None:
    made = document(commit(appended(1), ref(1, "v1", type="TAG", **{"max-ref-age-ms": None})))
    assert made["refs"]["v1"] == {"snapshot-id": 1, "type": "tag"}


def test_set_snapshot_ref_to_what_it_is_changes_nothing() -> None:
    base = appended(1)
    assert commit(base, ref(1)) is base


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        (ref(9, "dev"), ValidationFailed, "Cannot set dev to unknown snapshot: 9"),
        (ref(1, "main", type="tag"), ValidationFailed, "Cannot make main a tag"),
        (ref(1, "dev", type="leaf"), InvalidArgument, "Invalid snapshot ref type: leaf"),
        (ref(1, "t", type="tag", **{"min-snapshots-to-keep": 1}), InvalidArgument, "Tags do not support setting min"),
        (ref(1, "t", type="tag", **{"max-snapshot-age-ms": 1}), InvalidArgument, "Tags do not support setting max"),
        (ref(1, "d", **{"min-snapshots-to-keep": 0}), InvalidArgument, "Min snapshots to keep must be greater than 0"),
        (ref(1, "d", **{"max-snapshot-age-ms": 0}), InvalidArgument, "Max snapshot age must be greater than 0"),
        (ref(1, "d", **{"max-ref-age-ms": -5}), InvalidArgument, "Max reference age must be greater than 0"),
    ],
)
def test_set_snapshot_ref_refuses(update: Document, error: type[BadRequest], message: str) -> None:
    with pytest.raises(error, match=message):
        commit(appended(1), update)


def test_remove_snapshot_ref_of_main_leaves_the_table_without_current_snapshot() -> None:
    made = commit(appended(1), {"action": "remove-snapshot-ref", "ref-name": "main"})
    assert made.current_snapshot_id is None
    assert document(made)["refs"] == {}


def test_v3_writes_no_current_snapshot_as_null() -> None:
    base = commit(create(3), add(1, **{"first-row-id": 0, "added-rows": 7}), ref(1))
    made = commit(base, {"action": "remove-snapshot-ref", "ref-name": "main"})
    assert document(made)["current-snapshot-id"] is None


def test_remove_snapshot_ref_that_is_not_there_changes_nothing() -> None:
    base = appended(1)
    assert commit(base, {"action": "remove-snapshot-ref", "ref-name": "dev"}) is base


def test_remove_snapshots_drops_history_before_the_gap_refs_and_statistics() -> None:
    statistics = {"snapshot-id": 2, "statistics-path": "s3://b/p", "file-size-in-bytes": 1}
    base = commit(
        appended(1, 2, 3),
        ref(2, "dev"),
        {"action": "set-partition-statistics", "partition-statistics": statistics},
    )
    made = document(commit(base, drop(2)))
    assert [each["snapshot-id"] for each in made["snapshots"]] == [1, 3]
    assert log(made) == [(3, 3)]
    assert made["refs"].keys() == {"main"}
    assert made["partition-statistics"] == []


def test_remove_snapshots_of_the_current_one_leaves_no_current_snapshot() -> None:
    made = commit(appended(1, 2), drop(2))
    assert made.current_snapshot_id is None
    assert log(document(made)) == []


def test_remove_snapshots_that_are_not_there_changes_nothing() -> None:
    base = appended(1)
    assert commit(base, drop(7)) is base


def test_a_snapshot_may_be_added_and_removed_in_one_commit() -> None:
    made = document(commit(appended(1), add(2), drop(2, 1), add(3), ref(3)))
    assert [each["snapshot-id"] for each in made["snapshots"]] == [3]
    assert log(made) == [(3, 3)]


def test_a_snapshot_from_the_future_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"Invalid update timestamp .*: before last snapshot log entry"):
        commit(create(), add(1, **{"timestamp-ms": NOW + 62_000}), ref(1))


def test_a_snapshot_log_that_goes_back_by_more_than_a_minute_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Expected sorted snapshot log entries"):
        commit(appended(1), add(2, **{"timestamp-ms": NOW - 60_001}), ref(2))


def foreign_log(*snapshot_ids: int) -> TableMetadata:
    """A table with the snapshots 1 to 3, whose log somebody else wrote."""
    entries = [{"snapshot-id": each, "timestamp-ms": NOW} for each in snapshot_ids]
    found = document(appended(1, 2, 3)) | {"snapshot-log": entries}
    return TableMetadata.read_file(json.dumps(found).encode())


def test_a_log_that_does_not_end_with_the_current_snapshot_is_not_corrected_blindly() -> None:
    with pytest.raises(ValidationFailed, match="latest entry is not the current snapshot"):
        commit(foreign_log(1, 2), drop(1))


def test_an_empty_log_does_not_keep_snapshots_from_being_removed() -> None:
    assert log(document(commit(foreign_log(), drop(1)))) == []


def test_log_entries_of_snapshots_that_are_long_gone_are_dropped_with_passing_ones() -> None:
    base = foreign_log(9, 3)
    made = document(commit(base, add(4), ref(4), add(5), ref(5)))
    assert [each for each, _ in log(made)] == [3, 5]


def test_a_minute_of_clock_skew_is_tolerated_both_ways() -> None:
    ahead = commit(create(), add(1, **{"timestamp-ms": NOW + 61_000}), ref(1))
    assert log(document(ahead)) == [(1, 61_000)]
    behind = commit(appended(1), add(2, **{"timestamp-ms": NOW + 1 - 60_000}), ref(2))
    assert log(document(behind)) == [(1, 1), (2, 1 - 60_000)]


def test_the_shortest_retention_is_one() -> None:
    shortest = {"min-snapshots-to-keep": 1, "max-snapshot-age-ms": 1, "max-ref-age-ms": 1}
    made = document(commit(appended(1), ref(1, "dev", **shortest)))
    assert made["refs"]["dev"] == {"snapshot-id": 1, "type": "branch", **shortest}
