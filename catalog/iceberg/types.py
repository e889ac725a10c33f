"""The types of a schema in JSON (spec appendix C)."""

from typing import TypeAlias

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.wire import Int32, Wire


class NestedField(Wire):
    """A field of a struct; its defaults stay raw JSON until they are used."""

    id: Int32
    name: str
    type: "AnyType"
    required: bool
    doc: str | None = None
    initial_default: Raw = wire.NULL
    write_default: Raw = wire.NULL


class StructType(Wire, tag_field="type", tag="struct"):
    fields: list[NestedField]


class ListType(Wire, tag_field="type", tag="list"):
    element_id: Int32
    element: "AnyType"
    element_required: bool


class MapType(Wire, tag_field="type", tag="map"):
    key_id: Int32
    key: "AnyType"
    value_id: Int32
    value: "AnyType"
    value_required: bool


AnyType: TypeAlias = StructType | ListType | MapType | str
"""A type: nested, or the name of a primitive one."""


def kind_of(type_: AnyType) -> str:
    """The name of a type in messages: `struct`, `list`, `map`, or the name of a primitive type."""
    if isinstance(type_, StructType):
        return "struct"
    if isinstance(type_, ListType):
        return "list"
    return "map" if isinstance(type_, MapType) else type_
