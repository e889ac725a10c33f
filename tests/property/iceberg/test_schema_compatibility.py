"""Random changes of schemas, judged by our rules and by two that do not know them.

Backward: PyIceberg's own check that a reader's schema fits what was written. Forward: a reader who asks for the columns
of the old schema by name, tried on rows of the new one that have every null and every extreme value.
"""

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.schema import _check_schema_compatible

from catalog.iceberg.schema_compatibility import Wanted, breaks
from catalog.iceberg.schemas import read

Field = dict[str, Any]
# without what PyIceberg allows against the specification: strings for binary, and decimals of another scale
TYPES = ("boolean", "int", "long", "float", "double", "decimal(9, 2)", "decimal(12, 2)", "string")
EXTREMES: dict[str, tuple[object, ...]] = {
    "boolean": (True,),
    "int": (2**31 - 1,),
    "long": (2**63 - 1,),
    "float": (1.5,),
    "double": (1e300,),
    "decimal(9, 2)": ("9999999.99",),
    "decimal(12, 2)": ("9999999999.99",),
    "string": ("text",),
}


@st.composite
def _fields(draw: st.DrawFn, numbers: Iterator[int], depth: int = 2) -> list[Field]:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        number = next(numbers)
        kind: Any = draw(st.sampled_from(TYPES))
        if depth and draw(st.integers(0, 3)) == 0:
            kind = {"type": "struct", "fields": draw(_fields(numbers, depth - 1))}
        elif depth and draw(st.integers(0, 5)) == 0:
            kind = {
                "type": "list",
                "element-id": next(numbers),
                "element": kind,
                "element-required": draw(st.booleans()),
            }
        made.append({"id": number, "name": f"c{number}", "type": kind, "required": draw(st.booleans())})
    return made


@st.composite
def _changed(draw: st.DrawFn, fields: list[Field], numbers: Iterator[int], depth: int = 2) -> list[Field]:
    """The fields after random changes at each level; names are never used again."""
    kept: list[Field] = []
    for each in fields:
        change = draw(st.sampled_from(("none", "none", "none", "drop", "rename", "retype", "null", "reorder")))
        made = dict(each)
        if change == "drop" and len(fields) > 1:
            continue
        if change == "rename":
            made["name"] = f"r{next(numbers)}"
        if change == "retype" and isinstance(made["type"], str):
            made["type"] = draw(st.sampled_from(TYPES))
        if change == "null":
            made["required"] = not made["required"]
        if isinstance(made["type"], dict):
            made["type"] = draw(_changed_type(made["type"], numbers, depth - 1))
        kept.insert(0, made) if change == "reorder" else kept.append(made)
    if not kept or draw(st.integers(0, 2)) == 0:
        kept += draw(_fields(numbers, min(depth, 1)))
    return kept


@st.composite
def _changed_type(draw: st.DrawFn, kind: dict[str, Any], numbers: Iterator[int], depth: int) -> dict[str, Any]:
    if kind["type"] == "struct":
        return {**kind, "fields": draw(_changed(kind["fields"], numbers, depth))}
    element = kind["element"]
    if isinstance(element, str) and draw(st.booleans()):
        element = draw(st.sampled_from(TYPES))
    return {**kind, "element": element, "element-required": draw(st.booleans())}


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, str]:
    """JSON, which a report shows in one line."""
    numbers = count(1)
    before = draw(_fields(numbers))
    after = draw(_changed(before, numbers))
    return _schema(before), _schema(after)


def _schema(fields: list[Field]) -> str:
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


def _breaks(change: tuple[str, str], wanted: Wanted) -> list[Any]:
    old, new = (read(each.encode(), "schema") for each in change)
    return list(breaks(old, new, wanted, by_id=True))


@given(changes())
@settings(max_examples=300, deadline=None)
def test_backward_is_what_pyiceberg_can_read(change: tuple[str, str]) -> None:
    found = _breaks(change, Wanted(backward=True, forward=False))
    provided, requested = (PyIcebergSchema.model_validate_json(each) for each in change)
    try:
        with redirect_stdout(StringIO()):  # it prints what does not fit
            _check_schema_compatible(requested, provided)
        refusal = None
    except ValueError as error:
        refusal = repr(error)
    assert (refusal is None) is not bool(found), (found, refusal)


@given(changes())
@settings(max_examples=300, deadline=None)
def test_forward_is_what_a_reader_by_name_can_read(change: tuple[str, str]) -> None:
    # what Iceberg itself does not know as a change of type is refused in both directions
    found = _breaks(change, Wanted(backward=False, forward=True))
    before, after = (json.loads(each) for each in change)
    assert _reads(before, after) is not bool(found), found


def _reads(asked: Any, there: Any) -> bool:
    """Whether a reader who knows the type `asked` can use every value that the type `there` can have."""
    if isinstance(asked, str) or isinstance(there, str):
        return isinstance(there, str) and all(_holds(asked, each, there) for each in EXTREMES[there])
    if asked["type"] != there["type"]:
        return False
    if asked["type"] == "list":
        nulls = not there["element-required"]
        return not (nulls and asked["element-required"]) and _reads(asked["element"], there["element"])
    columns = {each["name"]: each for each in there["fields"]}
    for each in asked["fields"]:
        column = columns.get(each["name"])
        if column is None or (each["required"] and not column["required"]):
            return False
        if not _reads(each["type"], column["type"]):
            return False
    return True


def _holds(kind: Any, value: object, written: str) -> bool:
    """A value of another type is only held by the type that Iceberg writes it with."""
    return isinstance(kind, str) and kind == written and value in EXTREMES[kind]
