"""The facade: the document itself, commits as a whole, creating by updates, the metadata log."""

import json

import msgspec
import pytest

from catalog.iceberg import tables
from catalog.iceberg.tables import TableMetadata
from lakewarden.errors import BadRequest, InvalidArgument, ValidationFailed
from tests.unit.iceberg.documents import (
    LOCATION,
    NOW,
    OTHER_UUID,
    UUID,
    Document,
    add,
    appended,
    commit,
    create,
    document,
    raw,
    ref,
    schema,
)

CREATE = {"type": "assert-create"}
STEPS: list[Document] = [
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "add-schema", "schema": schema()},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 2, "transform": "day", "name": "d"}]}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": f"{LOCATION}/"},
]


def owner(name: str) -> Document:
    return {"action": "set-properties", "updates": {"owner": name}}


def test_decode_and_encode_give_back_the_same_bytes() -> None:
    text = appended(1, 2).encode()
    assert TableMetadata.decode(text).encode() == text


def test_unknown_members_survive_a_commit_byte_for_byte() -> None:
    odd = b'{"b": 12345678901234567890.1230e-400, "a":[1.0 ,-0]}'
    text = create().encode()[:-1] + b',"x-odd":' + odd + b"}"
    made = commit(TableMetadata.decode(text), add(1), ref(1), owner("me"))
    assert b'"x-odd":' + odd in made.encode()


def test_a_commit_leaves_its_base_as_it_was() -> None:
    base = appended(1)
    before = base.encode()
    commit(base, add(2), ref(2), owner("me"), {"action": "remove-snapshots", "snapshot-ids": [1]})
    assert base.encode() == before


def test_updates_may_be_raw_values_of_a_decoded_request() -> None:
    body = msgspec.json.decode(json.dumps({"updates": [owner("me")]}), type=dict[str, list[msgspec.Raw]])
    made = tables.commit(create(), [], body["updates"], base_location=None, now_ms=NOW, new_uuid=UUID)
    assert made.properties["owner"] == "me"


def test_a_commit_without_changes_is_the_base_itself() -> None:
    base = create()
    assert commit(base) is base


def test_an_unknown_update_is_named_with_its_place() -> None:
    with pytest.raises(BadRequest, match=r"updates\[1\]: unknown action: add-cheese; known are add-encryption-key"):
        commit(create(), owner("me"), {"action": "add-cheese"})


def test_no_update_is_applied_before_all_are_known() -> None:
    with pytest.raises(BadRequest, match="unknown action"):
        commit(create(), ref(99), {"action": "add-cheese"})


def test_actions_are_read_in_any_case() -> None:
    assert commit(create(), owner("me") | {"action": "Set-Properties"}).properties["owner"] == "me"


def test_create_by_updates_makes_the_table() -> None:
    made = commit(None, *STEPS, owner("me"), requires=(CREATE,))
    found = document(made)
    assert (made.uuid, made.location, made.format_version) == (UUID, LOCATION, 3)
    assert (made.last_updated_ms, made.properties) == (NOW + 1000, {"owner": "me"})
    assert (found["last-column-id"], found["last-partition-id"], found["next-row-id"]) == (3, 1000, 0)
    assert (found["metadata-log"], found["default-spec-id"]) == ([], 0)


def test_create_by_updates_may_start_with_a_snapshot() -> None:
    made = commit(None, *STEPS, add(1, **{"first-row-id": 0, "added-rows": 3}), ref(1), requires=(CREATE,))
    assert made.current_snapshot_id == 1


def test_create_by_updates_defaults_to_v2_and_the_servers_uuid() -> None:
    made = commit(None, *STEPS[2:], requires=(CREATE,))
    assert (made.uuid, made.format_version) == (OTHER_UUID, 2)


@pytest.mark.parametrize(
    ("left_out", "message"),
    [("set-location", "without a location"), ("add-schema", "add a schema first|no schema"), ("add-spec", "spec")],
)
def test_create_by_updates_refuses_an_incomplete_table(left_out: str, message: str) -> None:
    steps = [each for each in STEPS if each["action"] != left_out]
    with pytest.raises(BadRequest, match=message):
        commit(None, *steps, requires=(CREATE,))


def test_create_by_updates_refuses_a_spec_before_its_schema() -> None:
    with pytest.raises(InvalidArgument, match="Cannot find current schema with id 0: add a schema first"):
        commit(None, STEPS[4], requires=(CREATE,))


def test_create_by_updates_refuses_a_table_of_a_location_only() -> None:
    with pytest.raises(ValidationFailed, match="Cannot create table without schemas: add an add-schema update"):
        commit(None, STEPS[-1], requires=(CREATE,))


@pytest.mark.parametrize(
    ("upto", "what"),
    [(2, "a schema"), (4, "a partition spec"), (6, "a sort order")],
)
def test_a_snapshot_before_the_layout_is_refused(upto: int, what: str) -> None:
    with pytest.raises(ValidationFailed, match=f"Attempting to add a snapshot before {what} is added"):
        commit(None, *STEPS[:upto], add(1), requires=(CREATE,))


def test_create_by_updates_refuses_unknown_format_versions() -> None:
    with pytest.raises(InvalidArgument, match="Unsupported format version: v4"):
        commit(None, {"action": "upgrade-format-version", "format-version": 4}, requires=(CREATE,))


def test_the_metadata_log_keeps_as_many_files_as_the_property_says() -> None:
    base = create(properties={"write.metadata.previous-versions-max": "2"})
    versions = [base]
    for number in range(4):
        versions.append(
            tables.commit(
                versions[-1],
                [],
                raw(owner(str(number))),
                base_location=f"s3://b/{number}.json",
                now_ms=NOW + number,
                new_uuid=UUID,
            ),
        )
    assert versions[-1].metadata_files == ["s3://b/2.json", "s3://b/3.json"]
    times = [each["timestamp-ms"] - NOW for each in document(versions[-1])["metadata-log"]]
    assert times == [1, 2]
    assert tables.removed_metadata_files(versions[-2], versions[-1]) == []


@pytest.mark.parametrize(("value", "removed"), [("true", ["s3://b/0.json"]), ("TRUE", ["s3://b/0.json"]), ("no", [])])
def test_files_that_fell_off_the_log_are_named_when_the_table_says_so(value: str, removed: list[str]) -> None:
    metadata = create(
        properties={
            "write.metadata.previous-versions-max": "1",
            "write.metadata.delete-after-commit.enabled": value,
        },
    )
    for number in range(2):
        base, updates = metadata, raw(owner(str(number)))
        metadata = tables.commit(base, [], updates, base_location=f"s3://b/{number}.json", now_ms=NOW, new_uuid=UUID)
    assert tables.removed_metadata_files(base, metadata) == removed


@pytest.mark.parametrize("length", ["many", "", "9" * 5000, "1_0", "٣"])
def test_a_log_length_that_is_no_number_is_refused_until_it_is_mended(length: str) -> None:
    base = create(properties={"write.metadata.previous-versions-max": length})
    with pytest.raises(InvalidArgument, match=f"previous-versions-max: {length} is not a number"):
        commit(base, owner("me"))
    commit(base, {"action": "remove-properties", "removals": ["write.metadata.previous-versions-max"]})


def test_time_does_not_run_backwards() -> None:
    base = create()
    made = tables.commit(base, [], raw(owner("me")), base_location="x", now_ms=NOW - 99_999, new_uuid=UUID)
    assert made.last_updated_ms == NOW


def test_with_referenced_snapshots_only_keeps_heads_of_branches_and_tags() -> None:
    base = commit(appended(1, 2, 3), ref(1, "v1", type="tag"))
    few = base.with_referenced_snapshots_only()
    assert [each["snapshot-id"] for each in document(few)["snapshots"]] == [1, 3]
    assert document(few) | {"snapshots": []} == document(base) | {"snapshots": []}
    assert document(create().with_referenced_snapshots_only())["snapshots"] == []
