from datetime import UTC, datetime
from typing import Any

from console import documents

NESTED: dict[str, Any] = {
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True, "doc": "the key"},
        {
            "id": 2,
            "name": "who",
            "type": {"type": "struct", "fields": [{"id": 3, "name": "country", "type": "string", "required": False}]},
            "required": False,
        },
        {
            "id": 4,
            "name": "tags",
            "type": {"type": "list", "element-id": 5, "element": "string", "element-required": True},
            "required": False,
        },
        {
            "id": 6,
            "name": "sizes",
            "type": {"type": "map", "key-id": 7, "key": "string", "value-id": 8, "value": "int"},
            "required": False,
        },
    ],
}


def test_nested_fields_follow_the_field_that_contains_them() -> None:
    found = [(each.id, each.path, each.type, each.depth) for each in documents.columns(NESTED)]
    assert found == [
        (1, "id", "long", 0),
        (2, "who", "struct", 0),
        (3, "who.country", "string", 1),
        (4, "tags", "list<string>", 0),
        (5, "tags.element", "string", 1),
        (6, "sizes", "map<string, int>", 0),
        (7, "sizes.key", "string", 1),
        (8, "sizes.value", "int", 1),
    ]


def test_identifiers_and_required_fields_are_marked() -> None:
    first, *_ = documents.columns(NESTED)
    assert (first.is_identifier, first.required, first.doc) == (True, True, "the key")


def test_difference_names_added_removed_and_renamed_fields() -> None:
    after = {
        "fields": [
            {"id": 1, "name": "number", "type": "long", "required": True, "doc": "the key"},
            {"id": 9, "name": "channel", "type": "string", "required": False},
        ]
    }
    before = {"fields": [NESTED["fields"][0], {"id": 2, "name": "old", "type": "int", "required": False}]}
    found = [(each.kind, each.before, each.after) for each in documents.differences(before, after)]
    assert found == [
        ("changed", "id: long required (the key)", "number: long required (the key)"),
        ("removed", "old: int", ""),
        ("added", "", "channel: string"),
    ]


def test_partition_and_sort_fields_name_their_columns() -> None:
    spec = {"fields": [{"source-id": 3, "field-id": 1000, "name": "land", "transform": "identity"}]}
    order = {"fields": [{"source-id": 1, "transform": "bucket[4]", "direction": "asc", "null-order": "nulls-first"}]}
    assert documents.named_fields(spec, NESTED) == [("land", "identity(who.country)")]
    assert documents.sorting(order, NESTED) == ["bucket[4](id) asc, nulls first"]


def test_snapshots_are_newest_first_with_the_main_branch_before_other_refs() -> None:
    metadata = {
        "refs": {
            "audit": {"snapshot-id": 2, "type": "branch"},
            "main": {"snapshot-id": 2, "type": "branch"},
        },
        "snapshots": [
            {"snapshot-id": 1, "timestamp-ms": 1_000, "summary": {"operation": "append", "total-records": "5"}},
            {"snapshot-id": 2, "parent-snapshot-id": 1, "timestamp-ms": 2_000, "summary": {"total-records": "many"}},
        ],
    }
    newest, oldest = documents.snapshots(metadata)
    assert (newest.id, newest.refs, newest.operation, newest.total_records) == (2, ("main", "audit"), "unknown", None)
    assert (oldest.at, oldest.total_records) == (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 5)


def test_times_that_no_calendar_has_are_shown_as_the_last_or_first_one() -> None:
    assert documents.moment(2**62).year == 9999
    assert documents.moment(-(2**62)).year == 1
