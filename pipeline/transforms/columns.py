"""Which columns a table needs for the events that came: their names, types, and what to add or widen.

Types are those of Iceberg's JSON (https://iceberg.apache.org/spec/#appendix-c-json-serialization).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from pipeline.transforms.shapes import Shape

Type = str | dict[str, Any]

CDC_COLUMNS = {
    "_cdc_sequence": "long",
    "_cdc_timestamp": "timestamptz",
    "_cdc_operation": "string",
    "_cdc_row_id": "string",
}
"""The columns that each row of a change log has, in their order."""
METADATA_COLUMN = "_cdc_metadata"
METADATA_TYPE = {"type": "map", "key": "string", "value": "string", "value-required": False}
RESERVED_PREFIX = "_cdc_"

MAX_COLUMNS = 1000
MAX_NAME = 255

_COLUMN_OF_SHAPE = {"int": "long", "long": "long", "double": "double", "boolean": "boolean", "string": "string"}
_SQL_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "string": "STRING",
    "uuid": "STRING",
    "binary": "BINARY",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a field of a struct."""

    name: str
    type: Type
    required: bool = False

    @classmethod
    def parse_all(cls, struct: Mapping[str, Any]) -> tuple["Column", ...]:
        """The fields of a schema or struct in Iceberg's JSON."""
        return tuple(cls(field["name"], field["type"], bool(field.get("required"))) for field in struct["fields"])


@dataclass(frozen=True, slots=True)
class Change:
    """A column to add, or with `widens` one to widen. `path` leads through structs, and `element` of lists."""

    path: tuple[str, ...]
    type: Type
    widens: bool = False


def column_for(field: str, columns: Mapping[str, Column], *, top: bool) -> str | None:
    """The name of the column that holds this field of a JSON object; None if there is none yet.

    A field named like one of our own columns, or like another one in other case, has a column of another name.
    """
    for name in _names(field, top=top):
        if name in columns:
            return name
    return None


def _names(field: str, *, top: bool) -> Iterator[str]:
    if not (top and field.lower().startswith(RESERVED_PREFIX)):
        yield field
    yield f"{field.strip('_') if top else field}__{crc32(field.encode()):08x}"


def needed(columns: tuple[Column, ...], fields: Mapping[str, Shape]) -> list[Change]:
    """The changes that make room for events with these fields, in the order in which they came."""
    return list(_needed(columns, fields, path=()))


def _needed(columns: tuple[Column, ...], fields: Mapping[str, Shape], *, path: tuple[str, ...]) -> Iterator[Change]:
    known = {column.name: column for column in columns}
    folded = {name.lower() for name in known}
    for field, shape in fields.items():
        name = column_for(field, known, top=not path)
        if name is not None:
            yield from _grown(known[name].type, shape, path=(*path, name))
        elif (made := type_of(shape)) is not None and 0 < len(field) <= MAX_NAME and len(known) < MAX_COLUMNS:
            name = next((each for each in _names(field, top=not path) if each.lower() not in folded), None)
            if name is not None:
                known[name] = Column(name, made)
                folded.add(name.lower())
                yield Change((*path, name), made)


def _grown(column: Type, shape: Shape, *, path: tuple[str, ...]) -> Iterator[Change]:
    """What an existing column lacks for values of this shape; nothing for values that it cannot hold at all."""
    if column == "int" and shape == "long":
        yield Change(path, "long", widens=True)
    if not isinstance(column, dict) or not isinstance(shape, dict):
        return
    if column["type"] == "struct" and "struct" in shape:
        yield from _needed(Column.parse_all(column), shape["struct"], path=path)
    elif column["type"] == "list" and "list" in shape:
        yield from _grown(column["element"], shape["list"], path=(*path, "element"))


def type_of(shape: Shape) -> Type | None:
    """The type of a new column; None while nothing is known that could be stored."""
    if shape is None or isinstance(shape, str):
        return _COLUMN_OF_SHAPE[shape] if shape else None
    if "list" in shape:
        element = type_of(shape["list"])
        return element and {"type": "list", "element": element, "element-required": False}
    fields = [
        {"name": change.path[0], "type": change.type, "required": False}
        for change in _needed((), shape["struct"], path=("",))
        for change in [Change(change.path[1:], change.type)]
    ]
    return {"type": "struct", "fields": fields} if fields else None


def sql_type(column: Type) -> str:
    """As Spark's DDL writes it."""
    if isinstance(column, str):
        if column.startswith("fixed"):
            return "BINARY"
        if decimal := _DECIMAL.fullmatch(column):
            return f"DECIMAL({decimal[1]},{decimal[2]})"
        return _SQL_TYPES[column]
    match column["type"]:
        case "list":
            return f"ARRAY<{sql_type(column['element'])}>"
        case "map":
            return f"MAP<{sql_type(column['key'])}, {sql_type(column['value'])}>"
        case _:
            fields = (f"{quoted(each.name)}: {sql_type(each.type)}" for each in Column.parse_all(column))
            return f"STRUCT<{', '.join(fields)}>"


def is_supported(column: Type) -> bool:
    """Whether the pipeline can fill columns of this type."""
    try:
        sql_type(column)
    except KeyError:
        return False
    return True


def decimal_of(column: Type) -> tuple[int, int] | None:
    """Precision and scale of a decimal."""
    found = _DECIMAL.fullmatch(column) if isinstance(column, str) else None
    return (int(found[1]), int(found[2])) if found else None


def quoted(*names: str) -> str:
    """A name of several parts for Spark's SQL."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)
