"""Logical types of Debezium and Kafka Connect, which the schema envelope names, as values that engines understand.

Days, milli-, micro- and nanoseconds become ISO 8601 texts; packed decimals become texts of decimal numbers. A value
without a logical type is passed on byte for byte.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from ingest.client.errors import WrongLine
from ingest.client.files.formats import Members, encoded, shown
from ingest.client.files.lines import Line

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_NS = 86_400_000_000_000

Convert = Callable[[Any, Mapping[str, str]], str]


class Field(msgspec.Struct, frozen=True):
    """A field of a Kafka Connect schema, as the JSON converter writes it."""

    type: str
    field: str = ""
    name: str = ""
    parameters: dict[str, str] | None = None
    fields: tuple["Field", ...] = ()
    items: "Field | None" = None
    values: "Field | None" = None


def fields(schema: Members) -> dict[str, Field]:
    """The fields of a struct's schema by name; none if it is not one that the JSON converter writes."""
    try:
        return {each.field: each for each in msgspec.convert(_plain(schema), Field).fields}
    except msgspec.ValidationError:
        return {}


def row_fields(schema: Members) -> dict[str, Field]:
    """The columns of the row in an envelope's schema, whose `before` and `after` have the same."""
    found = fields(schema)
    row = found.get("after") or found.get("before")
    return {} if row is None else {each.field: each for each in row.fields}


def converted(line: Line, row: Members, columns: Mapping[str, Field]) -> Members:
    """The row with logical types replaced. Raises `WrongLine` for a value that is not of its type."""
    changed: Members = {}
    for name, content in row.items():
        column = columns.get(name)
        if column is None or not _is_logical(column) or bytes(content) == b"null":
            continue
        try:
            changed[name] = encoded(_value(msgspec.json.decode(content), column))
        except (ValueError, TypeError, KeyError, OverflowError, binascii.Error):
            raise WrongLine(
                line.number, f"column {name!r} is {shown(content)}, which is not a {column.name}."
            ) from None
    return {**row, **changed}


def _plain(schema: Members) -> dict[str, object]:
    return {name: msgspec.json.decode(content) for name, content in schema.items()}


def _is_logical(field: Field) -> bool:
    inner = (*field.fields, *(each for each in (field.items, field.values) if each is not None))
    return field.name in _CONVERSIONS or any(map(_is_logical, inner))


def _value(value: Any, field: Field) -> object:  # noqa: ANN401  JSON
    if value is None:
        return None
    if (convert := _CONVERSIONS.get(field.name)) is not None:
        # without its schema's time zone or precision, a value that is a text already is what it should be
        return value if isinstance(value, str) and field.type == "string" else convert(value, field.parameters or {})
    if field.type == "struct":
        inner = {each.field: each for each in field.fields}
        return {name: _value(each, inner[name]) if name in inner else each for name, each in value.items()}
    if field.type == "array" and field.items is not None:
        return [_value(each, field.items) for each in value]
    if field.type == "map" and field.values is not None and isinstance(value, dict):
        return {name: _value(each, field.values) for name, each in value.items()}
    return value


def _scaled(packed: str, scale: int) -> str:
    """A big-endian integer in two's complement, with the point moved `scale` digits to the left."""
    number = int.from_bytes(base64.b64decode(packed, validate=True), signed=True)
    digits = str(abs(number))
    if scale > 0:
        digits = digits.rjust(scale + 1, "0")
        digits = f"{digits[:-scale]}.{digits[-scale:]}"
    elif number:
        digits += "0" * -scale
    return f"-{digits}" if number < 0 else digits


def _decimal(value: Any, parameters: Mapping[str, str]) -> str:  # noqa: ANN401  JSON
    return _scaled(value, int(parameters.get("scale", "0")))


def _variable_decimal(value: Any, _parameters: Mapping[str, str]) -> str:  # noqa: ANN401  JSON
    return _scaled(value["value"], int(value["scale"]))


def _date(value: Any, _parameters: Mapping[str, str]) -> str:  # noqa: ANN401  JSON
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()


def _time_of_day(unit_ns: int) -> Convert:
    def convert(value: Any, _parameters: Mapping[str, str]) -> str:  # noqa: ANN401  JSON
        nanoseconds = value * unit_ns
        if not 0 <= nanoseconds <= _DAY_NS:
            raise ValueError(value)
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_fraction(rest)}"

    return convert


def _timestamp(unit_ns: int) -> Convert:
    def convert(value: Any, _parameters: Mapping[str, str]) -> str:  # noqa: ANN401  JSON
        seconds, rest = divmod(value * unit_ns, 1_000_000_000)
        moment = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None)
        return f"{moment.isoformat()}{_fraction(rest)}Z"

    return convert


def _fraction(nanoseconds: int) -> str:
    """Six digits, as engines store them; nine if they are needed."""
    if nanoseconds == 0:
        return ""
    return f".{nanoseconds:09}" if nanoseconds % 1000 else f".{nanoseconds // 1000:06}"


_CONVERSIONS: Mapping[str, Convert] = {
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
    "org.apache.kafka.connect.data.Date": _date,
    "io.debezium.time.Date": _date,
    "org.apache.kafka.connect.data.Time": _time_of_day(1_000_000),
    "io.debezium.time.Time": _time_of_day(1_000_000),
    "io.debezium.time.MicroTime": _time_of_day(1_000),
    "io.debezium.time.NanoTime": _time_of_day(1),
    "org.apache.kafka.connect.data.Timestamp": _timestamp(1_000_000),
    "io.debezium.time.Timestamp": _timestamp(1_000_000),
    "io.debezium.time.MicroTimestamp": _timestamp(1_000),
    "io.debezium.time.NanoTimestamp": _timestamp(1),
}
