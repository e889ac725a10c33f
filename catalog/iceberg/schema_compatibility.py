"""Whether a new schema is compatible with the one before it; the rules are a table in docs/reference/data-contracts.md.

Backward: whoever holds the new schema can read the data that was written with the old one. Forward: whoever holds the
old schema, and asks for its columns by their names, can read the data that is written with the new one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from catalog.iceberg.primitive_types import Primitive
from catalog.iceberg.schemas import Field, Schema

_PROMOTIONS: Final = frozenset(
    {("int", "long"), ("float", "double"), ("date", "timestamp"), ("date", "timestamp_ns")},
)
_CONTAINERS: Final = frozenset({"list", "map"})

Key = int | str


class Break(NamedTuple):
    """A change that is not compatible: the full name of its column, and what is wrong, for a message."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """In which directions schemas must be compatible."""

    backward: bool
    forward: bool


def promotes(before: Primitive, after: Primitive) -> bool:
    """Whether a reader of type `after` can read what was written as `before` (spec "Schema Evolution")."""
    if before == after or before.name == "unknown" or (before.name, after.name) in _PROMOTIONS:
        return True
    is_decimal = before.name == after.name == "decimal"
    return is_decimal and before.scale == after.scale and before.precision <= after.precision


def breaks(before: Schema, after: Schema, wanted: Wanted, *, by_id: bool) -> list[Break]:
    """What is not compatible. Columns are the same if they have the same field id; without `by_id`, the same name."""
    old, new = _keyed(before, by_id=by_id), _keyed(after, by_id=by_id)
    pairs = [_Pair(before, after, old[key], new[key], by_id) for key in new if key in old]
    return [
        *(each for pair in pairs for each in _changed(pair, wanted)),
        *(each for key in new if key not in old for each in _added(after, new[key], old, by_id, wanted)),
        *(each for key in old if key not in new for each in _dropped(before, old[key], new, by_id, wanted)),
    ]


def leaf(schema: Schema, field: Field) -> str:
    """The field's own name, without those of the fields around it, which may contain dots, too."""
    parent = _parent(schema, field)
    return field.name if parent is None else field.name[len(parent.name) + 1 :]


@dataclass(frozen=True, slots=True)
class _Pair:
    before: Schema
    after: Schema
    old: Field
    new: Field
    by_id: bool


def _keyed(schema: Schema, *, by_id: bool) -> dict[Key, Field]:
    return {_key(each, by_id=by_id): each for each in schema.fields.values()}


def _key(field: Field, *, by_id: bool) -> Key:
    return field.id if by_id else field.name


def _parent(schema: Schema, field: Field) -> Field | None:
    return None if field.parent is None else schema.fields[field.parent]


def _parent_key(schema: Schema, field: Field, *, by_id: bool) -> Key | None:
    parent = _parent(schema, field)
    return None if parent is None else _key(parent, by_id=by_id)


def _changed(pair: _Pair, wanted: Wanted) -> Iterator[Break]:
    old, new = pair.old, pair.new
    column = old.name
    places = _parent_key(pair.before, old, by_id=pair.by_id), _parent_key(pair.after, new, by_id=pair.by_id)
    if places[0] != places[1]:
        yield Break(column, "would be moved to another place in the schema")
    names = leaf(pair.before, old), leaf(pair.after, new)
    if wanted.forward and names[0] != names[1]:
        yield Break(column, f"would be renamed to {new.name}, and readers of the old schema ask for it by its name")
    yield from (Break(column, reason) for reason in _retyped(old, new, wanted))
    if wanted.backward and new.required and not old.required:
        yield Break(column, "would become required, and data written before may hold nulls")
    if wanted.forward and old.required and not new.required:
        yield Break(column, "would become optional, and readers of the old schema expect no nulls")
    if old.initial_default != new.initial_default:
        yield Break(column, "would get another initial default, which changes the values of data written before")


def _retyped(old: Field, new: Field, wanted: Wanted) -> Iterator[str]:
    if old.type is None or new.type is None:
        if old.kind != new.kind:
            yield f"would become {shown_type(new)} instead of {shown_type(old)}"
    elif old.type != new.type:
        change = f"would become {new.type.text} instead of {old.type.text}"
        if not promotes(old.type, new.type):
            yield f"{change}, which is not a type promotion of Iceberg"
        elif wanted.forward:
            yield f"{change}, and readers of the old schema cannot hold its values"


def shown_type(field: Field) -> str:
    return field.type.text if field.type else f"a {field.kind}"


def _added(after: Schema, field: Field, old: dict[Key, Field], by_id: bool, wanted: Wanted) -> Iterator[Break]:  # noqa: FBT001 three of these functions take it
    parent = _parent(after, field)
    if parent is not None:
        known = old.get(_key(parent, by_id=by_id))
        if known is None or known.kind != parent.kind:
            return  # it comes with what is around it, which was judged
        if parent.kind in _CONTAINERS:
            yield Break(field.name, f"would be another field than the {parent.kind} has now: its field id would change")
            return
    if _is_in_key(after, field):
        yield Break(field.name, "would be added to the key of a map, which must not change")
    elif wanted.backward and field.required and field.initial_default is None:
        yield Break(
            field.name, "would be added as required without an initial default, and data written before has no value"
        )


def _dropped(before: Schema, field: Field, new: dict[Key, Field], by_id: bool, wanted: Wanted) -> Iterator[Break]:  # noqa: FBT001 three of these functions take it
    parent = _parent(before, field)
    if parent is not None:
        kept = new.get(_key(parent, by_id=by_id))
        if kept is None or kept.kind != parent.kind or parent.kind in _CONTAINERS:
            return  # what is around it was judged, and so was what a list or map has instead
    if _is_in_key(before, field):
        yield Break(field.name, "would be dropped from the key of a map, which must not change")
    elif wanted.forward:
        yield Break(field.name, "would be dropped, and readers of the old schema ask for it")


def _is_in_key(schema: Schema, field: Field) -> bool:
    around = [field, *schema.ancestors(field.id)]
    return any(outer.kind == "map" and leaf(schema, inner) == "key" for inner, outer in pairwise(around))
