"""The table of docs/reference/data-contracts.md, case by case."""

import json
from typing import Any

import pytest

from catalog.iceberg.primitive_types import primitive
from catalog.iceberg.schema_compatibility import Wanted, breaks, promotes
from catalog.iceberg.schemas import Schema, read

Field = dict[str, Any]
BACKWARD, FORWARD = Wanted(backward=True, forward=False), Wanted(backward=False, forward=True)


def field(identifier: int, name: str, kind: Any = "int", *, required: bool = False, **more: Any) -> Field:
    return {"id": identifier, "name": name, "type": kind, "required": required, **more}


def struct(*fields: Field) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def list_of(element: Any, *, identifier: int = 20, required: bool = False) -> dict[str, Any]:
    return {"type": "list", "element-id": identifier, "element": element, "element-required": required}


def map_of(key: Any, value: Any, *, value_id: int = 31) -> dict[str, Any]:
    return {"type": "map", "key-id": 30, "key": key, "value-id": value_id, "value": value, "value-required": False}


def schema(*fields: Field) -> Schema:
    return read(json.dumps(struct(*fields)).encode(), "schema")


A, B = field(1, "a"), field(2, "b")
NEW: Field = {"initial-default": 5}
OTHER: Field = {"initial-default": 6}
WRITTEN: Field = {"write-default": 6}
# before, after, whether it is backward and forward compatible
CASES: dict[str, tuple[list[Field], list[Field], bool, bool]] = {
    "nothing changes": ([A, B], [A, B], True, True),
    "another order": ([A, B], [B, A], True, True),
    "another doc": ([A], [field(1, "a", doc="x")], True, True),
    "an optional column is added": ([A], [A, B], True, True),
    "a required column is added": ([A], [A, field(2, "b", required=True)], False, True),
    "a required column with an initial default is added": ([A], [A, field(2, "b", required=True, **NEW)], True, True),
    "a column is dropped": ([A, B], [A], True, False),
    "a column is renamed": ([A], [field(1, "z")], True, False),
    "a column is dropped and another one gets its name": ([A], [field(2, "a")], True, False),
    "a wider type": ([A], [field(1, "a", "long")], True, False),
    "a narrower type": ([field(1, "a", "long")], [A], False, False),
    "another type": ([A], [field(1, "a", "string")], False, False),
    "optional becomes required": ([A], [field(1, "a", required=True)], False, True),
    "required becomes optional": ([field(1, "a", required=True)], [A], True, False),
    "another initial default": ([field(1, "a", **NEW)], [field(1, "a", **OTHER)], False, False),
    "another write default": ([A], [field(1, "a", **WRITTEN)], True, True),
    "a primitive becomes a struct": ([A], [field(1, "a", struct(field(3, "x")))], False, False),
    "a struct becomes a list": (
        [field(1, "a", struct(field(3, "x")))], [field(1, "a", list_of("int"))], False, False),
    "an optional field is added to a struct": (
        [field(1, "a", struct(field(3, "x")))], [field(1, "a", struct(field(3, "x"), field(4, "y")))], True, True),
    "a required field is added to a struct": (
        [field(1, "a", struct(field(3, "x")))],
        [field(1, "a", struct(field(3, "x"), field(4, "y", required=True)))], False, True),
    "an optional struct with a required field is added": (
        [A], [A, field(2, "b", struct(field(3, "x", required=True)))], True, True),
    "a field of a struct is dropped": (
        [field(1, "a", struct(field(3, "x"), field(4, "y")))], [field(1, "a", struct(field(3, "x")))], True, False),
    "a struct is renamed, its fields only with it": (
        [field(1, "a", struct(field(3, "x")))], [field(1, "z", struct(field(3, "x")))], True, False),
    "a field is moved into a struct": (
        [A, field(2, "b", struct(field(3, "x")))], [field(2, "b", struct(field(3, "x"), A))], False, False),
    "a wider element": ([field(1, "a", list_of("int"))], [field(1, "a", list_of("long"))], True, False),
    "another element": (
        [field(1, "a", list_of("int"))], [field(1, "a", list_of("int", identifier=21))], False, False),
    "another value of a map": (
        [field(1, "a", map_of("int", "int"))], [field(1, "a", map_of("int", "int", value_id=32))], False, False),
    "a field is added to the value of a map": (
        [field(1, "a", map_of("int", struct(field(3, "x"))))],
        [field(1, "a", map_of("int", struct(field(3, "x"), field(4, "y"))))], True, True),
    "a field is added to the key of a map": (
        [field(1, "a", map_of(struct(field(3, "x")), "int"))],
        [field(1, "a", map_of(struct(field(3, "x"), field(4, "y")), "int"))], False, False),
    "a field is dropped from the key of a map": (
        [field(1, "a", map_of(struct(field(3, "x"), field(4, "y")), "int"))],
        [field(1, "a", map_of(struct(field(3, "x")), "int"))], False, False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_change_is_compatible_as_the_table_says(case: str) -> None:
    before, after, is_backward, is_forward = CASES[case]
    old, new = schema(*before), schema(*after)
    assert bool(breaks(old, new, BACKWARD, by_id=True)) is not is_backward
    assert bool(breaks(old, new, FORWARD, by_id=True)) is not is_forward


def test_one_change_is_reported_once() -> None:
    """What is inside of a column comes and goes with it."""
    inside = struct(field(3, "x", required=True), field(4, "y", struct(field(5, "z", required=True))))
    dropped = breaks(schema(A, field(2, "b", inside)), schema(A), FORWARD, by_id=True)
    assert [each.column for each in dropped] == ["b"]
    added = breaks(schema(A), schema(A, field(2, "b", inside, required=True)), BACKWARD, by_id=True)
    assert [each.column for each in added] == ["b"]
    renamed = breaks(schema(field(2, "b", inside)), schema(field(2, "c", inside)), FORWARD, by_id=True)
    assert [each.column for each in renamed] == ["b"]


def test_without_ids_columns_are_known_by_their_names() -> None:
    both = Wanted(backward=True, forward=True)
    assert not breaks(schema(A, B), schema(field(7, "b"), field(8, "a")), both, by_id=False)
    renamed = breaks(schema(A), schema(field(1, "z")), both, by_id=False)
    assert [each.column for each in renamed] == ["a"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("int", "long", True),
        ("float", "double", True),
        ("decimal(4, 2)", "decimal(9, 2)", True),
        ("decimal(4, 2)", "decimal(9, 3)", False),
        ("decimal(9, 2)", "decimal(4, 2)", False),
        ("date", "timestamp", True),
        ("date", "timestamptz", False),
        ("unknown", "string", True),
        ("long", "double", False),
        ("fixed[4]", "fixed[8]", False),
    ],
)
def test_promotions_are_those_of_the_specification(before: str, after: str, *, expected: bool) -> None:
    assert promotes(primitive(before), primitive(after)) is expected
