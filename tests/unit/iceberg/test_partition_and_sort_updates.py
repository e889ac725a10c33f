"""Partition specs and sort orders."""

import pytest

from lakewarden.errors import InvalidArgument, ValidationFailed
from tests.unit.iceberg.documents import Document, commit, create, document, field, schema

LAST_SPEC = {"action": "set-default-spec", "spec-id": -1}
LAST_ORDER = {"action": "set-default-sort-order", "sort-order-id": -1}


def part(source_id: int, name: str, transform: str, **members: object) -> Document:
    return {"source-id": source_id, "name": name, "transform": transform, **members}


def add_spec(*fields: Document, **members: object) -> Document:
    return {"action": "add-spec", "spec": {"fields": list(fields), **members}}


def sort(source_id: int, direction: str = "asc", transform: str = "identity") -> Document:
    return {"source-id": source_id, "transform": transform, "direction": direction, "null-order": "nulls-first"}


def add_order(*fields: Document, order_id: int = 1) -> Document:
    return {"action": "add-sort-order", "sort-order": {"order-id": order_id, "fields": list(fields)}}


DAILY = add_spec(part(2, "d", "day", **{"field-id": 1000}), x=1)


def test_add_spec_gets_the_next_id_and_keeps_field_ids_and_unknown_members() -> None:
    made = document(commit(create(), DAILY, LAST_SPEC))
    stored = part(2, "d", "day", **{"field-id": 1000})
    assert made["partition-specs"] == [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": [stored], "x": 1}]
    assert (made["default-spec-id"], made["last-partition-id"]) == (1, 1000)


def test_add_spec_without_field_ids_takes_the_id_that_the_same_field_had_or_the_next() -> None:
    base = commit(create(), DAILY)
    made = document(commit(base, add_spec(part(1, "b", "bucket[4]"), part(2, "day_again", "DAY"))))
    assert [each["field-id"] for each in made["partition-specs"][2]["fields"]] == [1001, 1000]
    assert made["last-partition-id"] == 1001


def test_add_spec_that_the_table_has_changes_nothing() -> None:
    base = commit(create(), DAILY)
    assert commit(base, add_spec(part(2, "d", "day", **{"field-id": 1007}))) is base


def test_set_default_spec_minus_one_after_only_a_known_spec_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="Cannot set last added spec: no spec has been added"):
        commit(create(), add_spec(), LAST_SPEC)


def test_set_default_spec_to_an_unknown_one_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Cannot set default partition spec to unknown spec: 8"):
        commit(create(), {"action": "set-default-spec", "spec-id": 8})


def test_set_default_spec_to_the_default_changes_nothing() -> None:
    base = create()
    assert commit(base, {"action": "set-default-spec", "spec-id": 0}) is base


TAGS = {"type": "list", "element-id": 5, "element": "string", "element-required": False}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ([part(99, "p", "identity")], ValidationFailed, "Cannot find source column for partition field: .*99"),
        ([part(4, "p", "identity")], ValidationFailed, "Cannot partition by non-primitive source field: list tags"),
        ([part(5, "p", "identity")], ValidationFailed, "Invalid partition field parent: list tags"),
        ([part(1, "p", "day")], ValidationFailed, "Invalid source type long for transform: day"),
        ([part(1, "", "identity")], InvalidArgument, "Cannot use empty partition name"),
        ([part(1, "p", "identity"), part(2, "p", "day")], InvalidArgument, "partition name more than once: p"),
        ([part(1, "name", "identity")], InvalidArgument, "sourced from different field in schema: name"),
        (
            [part(1, "p", "identity", **{"field-id": 1000}), part(2, "q", "day", **{"field-id": 1000})],
            InvalidArgument,
            "partition field id more than once: 1000",
        ),
    ],
)
def test_add_spec_refuses(fields: list[Document], error: type[InvalidArgument], message: str) -> None:
    base = create(schema=schema(field(4, "tags", TAGS)))
    with pytest.raises(error, match=message):
        commit(base, add_spec(*fields))


def test_a_void_field_may_outlive_its_column() -> None:
    made = document(commit(create(), add_spec(part(99, "gone", "void")), LAST_SPEC))
    assert made["default-spec-id"] == 1


def test_a_partition_may_have_the_name_of_its_own_source() -> None:
    assert document(commit(create(), add_spec(part(1, "id", "bucket[4]"))))["last-partition-id"] == 1000


def test_v1_asks_for_sequential_partition_field_ids() -> None:
    with pytest.raises(ValidationFailed, match="does not use sequential IDs that are required in v1"):
        commit(create(1), add_spec(part(2, "d", "day", **{"field-id": 1001})))


def test_v1_repeats_the_default_spec_for_old_readers() -> None:
    made = document(commit(create(1), DAILY, LAST_SPEC))
    assert made["partition-spec"] == made["partition-specs"][1]["fields"]


def test_remove_partition_specs_keeps_the_default_one() -> None:
    base = commit(create(), DAILY, LAST_SPEC)
    made = document(commit(base, {"action": "remove-partition-specs", "spec-ids": [0]}))
    assert [each["spec-id"] for each in made["partition-specs"]] == [1]
    with pytest.raises(InvalidArgument, match="Cannot remove the default partition spec"):
        commit(base, {"action": "remove-partition-specs", "spec-ids": [1]})


def test_add_sort_order_gets_the_next_id() -> None:
    made = document(commit(create(), add_order(sort(1)), add_order(sort(1, "desc")), LAST_ORDER))
    assert [each["order-id"] for each in made["sort-orders"]] == [0, 1, 2]
    assert made["default-sort-order-id"] == 2


def test_add_sort_order_that_the_table_has_changes_nothing() -> None:
    base = commit(create(), add_order(sort(1)))
    assert commit(base, add_order(sort(1), order_id=7), add_order(order_id=0)) is base


def test_set_default_sort_order_refuses_unknown_and_never_added_ones() -> None:
    with pytest.raises(InvalidArgument, match="Cannot set default sort order to unknown sort order: 3"):
        commit(create(), {"action": "set-default-sort-order", "sort-order-id": 3})
    with pytest.raises(ValidationFailed, match="Cannot set last added sort order: no sort order has been added"):
        commit(create(), LAST_ORDER)


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        (add_order(sort(99)), ValidationFailed, "Cannot find source column for sort field: .*99"),
        (add_order(sort(1, transform="hour")), ValidationFailed, "Invalid source type long for transform: hour"),
        (add_order(sort(4)), ValidationFailed, "Cannot sort by non-primitive source field: list tags"),
        (add_order(sort(1), order_id=0), InvalidArgument, "Sort order ID 0 is reserved for unsorted order"),
        (add_order(order_id=2), InvalidArgument, "Unsorted order ID must be 0"),
    ],
)
def test_add_sort_order_refuses(update: Document, error: type[InvalidArgument], message: str) -> None:
    with pytest.raises(error, match=message):
        commit(create(schema=schema(field(4, "tags", TAGS))), update)
