"""JSON values as values of columns: exactly, or not at all.

A converter is built once for each column; it returns what Arrow takes, or raises `Unfit` with the reason. Parts of a
struct, list or map that do not fit are noted, so that the rest of the value is kept.
"""

import base64
import binascii
import re
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from pipeline.transforms.columns import Column, Type, column_for, decimal_of, is_supported
from pipeline.transforms.shapes import INT32

INT64 = range(-(2**63), 2**63)
MAX_FLOAT = 3.4028234663852886e38
_DIGITS = Context(prec=39)
"""Iceberg's decimals have up to 38, and rounding may add one; Python has 28 if it is not told otherwise."""
_TOO_FINE = re.compile(r"\.\d{6}\d*[1-9]")


class Unfit(ValueError):
    """A value that a column cannot hold; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that did not fit. `path` names it within its row, with dots."""

    path: str
    value: object
    reason: str


@dataclass(slots=True)
class Misfits:
    """Collects what does not fit in one row."""

    found: list[Misfit] = field(default_factory=list)

    def add(self, path: str, value: object, reason: str) -> None:
        self.found.append(Misfit(path, value, reason))


Converter = Callable[[Any, str, Misfits], Any]


def _kind(value: object) -> str:
    if value is None:
        return "null"
    for types, said in ((bool, "a boolean"), (str, "a string"), (dict, "an object"), (list, "a list")):
        if isinstance(value, types):
            return said
    return "a number"


def _refuse(value: object, wanted: str) -> Unfit:
    return Unfit(f"the column holds {wanted}, and the value is {_kind(value)}")


def _boolean(value: object, _path: str, _misfits: Misfits) -> bool:
    if isinstance(value, bool):
        return value
    raise _refuse(value, "booleans")


def _string(value: object, _path: str, _misfits: Misfits) -> str:
    if isinstance(value, str):
        return value
    raise _refuse(value, "strings")


def _integer(values: range, said: str) -> Converter:
    def convert(value: object, _path: str, _misfits: Misfits) -> int:
        if type(value) is int:
            number = value
        elif isinstance(value, Decimal) and value.adjusted() < 20 and value == value.to_integral_value():  # noqa: PLR2004  enough for 64 bits
            number = int(value)
        else:
            raise (
                _refuse(value, f"integers of {said}")
                if not isinstance(value, Decimal)
                else Unfit(f"the column holds integers of {said}, and the value has a fraction or is larger")
            )
        if number not in values:
            raise Unfit(f"the column holds integers of {said}, and the value is larger")
        return number

    return convert


def _floating(limit: float, width: str) -> Converter:
    def convert(value: object, _path: str, _misfits: Misfits) -> float:
        if type(value) is int:
            if abs(value) > limit or int(struct.unpack(width, struct.pack(width, value))[0]) != value:
                raise Unfit("the column holds floating-point numbers, which cannot hold this integer exactly")
            return float(value)
        if not isinstance(value, Decimal):
            raise _refuse(value, "numbers")
        number = float(value)
        if abs(number) > limit:
            raise Unfit("the value is larger than a floating-point number of the column")
        return number

    return convert


def _decimal(precision: int, scale: int) -> Converter:
    smallest = Decimal(1).scaleb(-scale)

    def convert(value: object, _path: str, _misfits: Misfits) -> Decimal:
        try:
            if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
                raise _refuse(value, f"decimals ({precision}, {scale})")
            number = Decimal(value)
            if not number.is_finite() or number.adjusted() >= precision - scale:
                raise Unfit(f"the column holds decimals ({precision}, {scale}), and the value is larger")
            kept = number.quantize(smallest, context=_DIGITS)
        except InvalidOperation:
            raise Unfit(f"the column holds decimals ({precision}, {scale}), and the value is not a number") from None
        if kept != number:
            raise Unfit(f"the column holds decimals ({precision}, {scale}), and the value has more digits")
        return kept

    return convert


def _parsed(parse: Callable[[str], Any], wanted: str) -> Converter:
    def convert(value: object, _path: str, _misfits: Misfits) -> Any:  # noqa: ANN401  what the column holds
        if not isinstance(value, str):
            raise _refuse(value, wanted)
        try:
            return parse(value)
        except (ValueError, binascii.Error):
            raise Unfit(f"the column holds {wanted}, and the string is not one") from None

    return convert


def _date(text: str) -> date:
    if len(text) != len("2026-01-31"):
        raise ValueError(text)
    return date.fromisoformat(text)


def _moment(*, zoned: bool) -> Callable[[str], datetime]:
    def parse(text: str) -> datetime:
        moment = datetime.fromisoformat(text)
        if (moment.tzinfo is None) is zoned or "T" not in text.upper() or _TOO_FINE.search(text):
            raise ValueError(text)
        return moment

    return parse


def _fixed(length: int) -> Callable[[str], bytes]:
    def parse(text: str) -> bytes:
        content = base64.b64decode(text, validate=True)
        if len(content) != length:
            raise ValueError(text)
        return content

    return parse


_SIMPLE: Mapping[str, Converter] = {
    "boolean": _boolean,
    "string": _string,
    "int": _integer(INT32, "32 bits"),
    "long": _integer(INT64, "64 bits"),
    "float": _floating(MAX_FLOAT, "f"),
    "double": _floating(sys.float_info.max, "d"),
    "date": _parsed(_date, "dates (strings like 2026-01-31)"),
    "timestamptz": _parsed(
        _moment(zoned=True), "timestamps with a time zone (ISO 8601 strings with an offset or Z, to the microsecond)"
    ),
    "timestamp": _parsed(
        _moment(zoned=False), "timestamps without a time zone (ISO 8601 strings without an offset, to the microsecond)"
    ),
    "uuid": _parsed(lambda text: str(UUID(text)), "UUIDs"),
    "binary": _parsed(lambda text: base64.b64decode(text, validate=True), "bytes (strings in base64)"),
}


def converter(column: Type) -> Converter:
    """How a JSON value that is not null becomes a value of this type."""
    if not is_supported(column):
        return _unsupported(column if isinstance(column, str) else str(column["type"]))
    if isinstance(column, dict):
        match column["type"]:
            case "list":
                return _list(converter(column["element"]), required=column.get("element-required", False))
            case "map":
                return _map(column)
            case _:
                return _struct(Row.of(Column.parse_all(column), top=False))
    if simple := _SIMPLE.get(column):
        return simple
    if decimal := decimal_of(column):
        return _decimal(*decimal)
    length = int(column.removeprefix("fixed[").removesuffix("]"))
    return _parsed(_fixed(length), f"{length} bytes (strings in base64)")


def _unsupported(name: str) -> Converter:
    def convert(_value: object, _path: str, _misfits: Misfits) -> None:
        raise Unfit(f"the pipeline cannot write columns of the type {name}")

    return convert


def _list(element: Converter, *, required: bool) -> Converter:
    def convert(value: object, path: str, misfits: Misfits) -> list[Any]:
        if not isinstance(value, list):
            raise _refuse(value, "lists")
        kept = [
            None if each is None else _or_null(element, each, f"{path}[{i}]", misfits) for i, each in enumerate(value)
        ]
        if required and None in kept:
            raise Unfit("the column holds lists without nulls")
        return kept

    return convert


def _map(column: Mapping[str, Any]) -> Converter:
    convert_value = converter(column["value"])

    def convert(value: object, path: str, misfits: Misfits) -> list[tuple[str, Any]]:
        if column["key"] != "string" or not isinstance(value, dict):
            raise _refuse(value, "maps")
        kept = [
            (key, None if each is None else _or_null(convert_value, each, f"{path}.{key}", misfits))
            for key, each in value.items()
        ]
        if column.get("value-required") and any(each is None for _, each in kept):
            raise Unfit("the column holds maps without nulls")
        return kept

    return convert


def _struct(row: "Row") -> Converter:
    def convert(value: object, path: str, misfits: Misfits) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _refuse(value, "objects")
        kept = row.convert(value, f"{path}.", misfits)
        if missing := [name for name in row.required if kept.get(name) is None]:
            raise Unfit(f"the field {missing[0]} is required")
        return kept

    return convert


def _or_null(convert: Converter, value: object, path: str, misfits: Misfits) -> Any:  # noqa: ANN401  what the column holds
    try:
        return convert(value, path, misfits)
    except Unfit as unfit:
        misfits.add(path, value, str(unfit))
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of a JSON object as columns. `required`: the names of those that must not be null."""

    columns: Mapping[str, Column]
    converters: Mapping[str, Converter]
    required: tuple[str, ...]
    top: bool
    places: dict[str, str | None]

    @classmethod
    def of(cls, columns: tuple[Column, ...], *, top: bool) -> "Row":
        known = {column.name: column for column in columns}
        converters = {column.name: converter(column.type) for column in columns}
        return cls(known, converters, tuple(each.name for each in columns if each.required), top, {})

    def convert(self, fields: Mapping[str, Any], prefix: str, misfits: Misfits) -> dict[str, Any]:
        """The values by column; fields that are null, or that do not fit, are left out."""
        kept: dict[str, Any] = {}
        for name, value in fields.items():
            if value is None:
                continue
            place = self._place(name)
            if place is None:
                misfits.add(f"{prefix}{name}", value, _without_column(name, value))
            elif (made := _or_null(self.converters[place], value, f"{prefix}{name}", misfits)) is not None:
                kept[place] = made
        return kept

    def _place(self, name: str) -> str | None:
        try:
            return self.places[name]
        except KeyError:
            place = column_for(name, self.columns, top=self.top)
            if len(self.places) < 10_000:  # noqa: PLR2004  what is made up by a caller does not fill the memory
                self.places[name] = place
            return place


def _without_column(name: str, value: object) -> str:
    if not name:
        return "a field without a name has no column"
    if value in ([], {}):
        return f"{_kind(value)} without content does not define the type of a new column"
    return "the table has no column for the field"
