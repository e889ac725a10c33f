"""Metadata files that others wrote: old spellings, gzip, and every way to be wrong."""

import gzip
import json

import pytest

from catalog.iceberg import metadata_file_decoding
from catalog.iceberg.tables import TableMetadata
from lakewarden.errors import ValidationFailed
from tests.unit.iceberg.documents import FIELDS, LOCATION, NOW, UUID, Document, appended, commit, create, document, ref

OLDEST: Document = {
    "format-version": 1,
    "location": f"{LOCATION}/",
    "last-updated-ms": NOW,
    "last-column-id": 3,
    "schema": {"type": "struct", "fields": FIELDS, "x": 1},
    "partition-spec": [
        {"source-id": 2, "transform": "day", "name": "d"},
        {"source-id": 1, "transform": "identity", "name": "id"},
    ],
    "current-snapshot-id": 7,
    "snapshots": [{"snapshot-id": 7, "timestamp-ms": NOW, "manifests": ["s3://b/m.avro"]}],
    "x-odd": {"kept": 1},
}


def read(found: Document) -> TableMetadata:
    return TableMetadata.read_file(json.dumps(found).encode())


def test_read_file_of_our_own_document_changes_nothing() -> None:
    for version in (1, 2, 3):
        text = create(version).encode()
        assert TableMetadata.read_file(text).encode() == text


def test_read_file_gunzips() -> None:
    text = appended(1).encode()
    assert TableMetadata.read_file(gzip.compress(text, mtime=0)).encode() == text


def test_read_file_ignores_a_byte_order_mark() -> None:
    assert TableMetadata.read_file(b"\xef\xbb\xbf" + create().encode()).uuid == UUID


def test_read_file_fills_in_what_the_oldest_files_leave_out() -> None:
    made = document(read(OLDEST))
    assert made["schemas"] == [{"type": "struct", "schema-id": 0, "fields": FIELDS, "x": 1}]
    assert made["current-schema-id"] == made["default-spec-id"] == made["default-sort-order-id"] == 0
    spec = [each | {"field-id": 1000 + at} for at, each in enumerate(OLDEST["partition-spec"])]
    assert made["partition-specs"] == [{"spec-id": 0, "fields": spec}]
    assert made["last-partition-id"] == 1001
    assert made["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert made["refs"] == {"main": {"snapshot-id": 7, "type": "branch"}}
    assert made["properties"] == {}
    assert made["location"] == LOCATION
    assert made["x-odd"] == {"kept": 1}
    empty = ("statistics", "partition-statistics", "snapshot-log", "metadata-log")
    assert all(made[each] == [] for each in empty)


def test_read_file_gives_a_table_without_uuid_the_same_one_every_time() -> None:
    assert read(OLDEST).uuid == read(OLDEST).uuid != read(OLDEST | {"location": "s3://other"}).uuid


def test_what_read_file_gives_can_be_committed_to() -> None:
    made = commit(read(OLDEST), {"action": "upgrade-format-version", "format-version": 2}, ref(7, "dev"))
    assert made.format_version == 2


def test_read_file_of_a_v1_file_without_spec_field_ids_reads_what_pyiceberg_and_java_read() -> None:
    made = document(read(OLDEST | {"current-snapshot-id": -1, "snapshots": None}))
    assert (made["current-snapshot-id"], made["snapshots"], made["refs"]) == (-1, [], {})


def test_read_file_drops_nulls_and_keeps_the_null_of_v3() -> None:
    assert "statistics" in document(read(document(create()) | {"statistics": None}))
    assert document(read(document(create(3))))["current-snapshot-id"] is None


CHANGES: list[tuple[Document, str]] = [
    ({"format-version": 4}, "Cannot read unsupported version 4"),
    ({"format-version": "2"}, "Expected `int`, got `str`"),
    ({"location": None}, "missing required field `location`|Expected `str`, got `null`"),
    ({"location": ""}, "Invalid location"),
    ({"table-uuid": None}, "table-uuid must exist in format v2"),
    ({"table-uuid": "x"}, "Invalid uuid: x"),
    ({"last-sequence-number": None}, "last-sequence-number must exist in format v2"),
    ({"schemas": None}, "schemas must exist in format v2"),
    ({"schemas": [{"type": "struct", "fields": []}]}, "Every one of schemas must have an id of its own"),
    ({"current-schema-id": 5}, r"Cannot find current-schema-id=5 in schemas: there are \[0\]"),
    ({"partition-specs": None}, "partition-specs must exist in format v2"),
    ({"default-spec-id": 5}, "Cannot find default-spec-id=5 in partition-specs"),
    ({"last-partition-id": None}, "last-partition-id must exist in format v2"),
    ({"sort-orders": []}, "Cannot find default-sort-order-id=0 in sort-orders"),
    ({"default-sort-order-id": 2**40}, "Expected `int` <= 2147483647"),
    ({"properties": {"a": 1}}, "Expected `str`, got `int`"),
    ({"current-snapshot-id": 9}, "Cannot find current snapshot 9 in snapshots"),
    ({"refs": {}}, "Current snapshot ID does not match main branch"),
    ({"refs": {"main": {"snapshot-id": 9, "type": "branch"}}}, "Snapshot 9 for reference main does not exist"),
    ({"refs": {"main": {"snapshot-id": 2, "type": "leaf"}}}, "Invalid snapshot ref type of main: leaf"),
    ({"refs": {"main": {"snapshot-id": 1, "type": "branch"}}}, "does not match main branch"),
    ({"last-sequence-number": 1}, "Invalid snapshot with sequence number 2 greater than last sequence number 1"),
    ({"snapshots": [{"snapshot-id": 2}]}, "missing required field `timestamp-ms`"),
    ({"snapshots": [{"snapshot-id": 2, "timestamp-ms": 1}] * 2}, "Snapshot exists more than once: 2"),
    ({"snapshot-log": [{"timestamp-ms": NOW * 2, "snapshot-id": 2}]}, "before last snapshot log entry"),
    ({"metadata-log": [{"timestamp-ms": 5}]}, "missing required field `metadata-file`"),
    ({"statistics": [{"snapshot-id": 1}]}, "missing required field `statistics-path`"),
    ({"encryption-keys": [{"key-id": 1}]}, "Expected `str`, got `int`"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_read_file_says_what_is_wrong(change: Document, message: str) -> None:
    good = document(appended(1, 2))
    read(good)
    with pytest.raises(ValidationFailed, match=f"(?s)Invalid table metadata file: .*(?:{message})"):
        read(good | change)


@pytest.mark.parametrize("missing", ["schema", "partition-spec"])
def test_read_file_of_v1_needs_either_spelling(missing: str) -> None:
    with pytest.raises(ValidationFailed, match=f"{missing} must exist in format v1"):
        read({name: each for name, each in OLDEST.items() if name != missing})


def test_read_file_of_v1_needs_the_choice_where_it_has_the_list() -> None:
    with pytest.raises(ValidationFailed, match="current-schema-id must exist where schemas does"):
        read(OLDEST | {"schemas": [OLDEST["schema"] | {"schema-id": 0}]})


def test_read_file_of_v3_needs_next_row_id() -> None:
    found = document(create(3))
    del found["next-row-id"]
    with pytest.raises(ValidationFailed, match="next-row-id must exist in format v3"):
        read(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not valid JSON"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field `format-version`"),
        (b"PAR1", "not valid JSON"),
        (b"\xff\xfe", "not valid UTF-8"),
        (b"\x1f\x8bnonsense", "not a whole gzip file"),
        (gzip.compress(b"{}", mtime=0)[:-9], "it ends too early"),
        (b'{"a":' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
    ],
)
def test_read_file_refuses_what_is_no_document(text: bytes, message: str) -> None:
    with pytest.raises(ValidationFailed, match=f"Invalid table metadata file: .*{message}"):
        TableMetadata.read_file(text)


def test_read_file_unpacks_no_more_of_a_gzip_bomb_than_it_says() -> None:
    bomb = gzip.compress(b" " * 100_000, mtime=0)
    assert metadata_file_decoding.length(bomb) == 100_000
    assert metadata_file_decoding.length(b"{}") == 2
    with pytest.raises(ValidationFailed, match="is longer than it says"):
        TableMetadata.read_file(bomb[:-4] + b"\x0a\x00\x00\x00")
