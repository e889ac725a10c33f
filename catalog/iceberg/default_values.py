"""Checks that default values match their column's type (spec appendix "JSON single-value serialization")."""

import re
from collections.abc import Callable
from datetime import date, time
from typing import Any, Final
from uuid import UUID

from catalog.iceberg.primitive_types import Primitive, primitive
from catalog.iceberg.types import AnyType, ListType, MapType, StructType, kind_of
from lakewarden.errors import InvalidArgument

SINCE_VERSION: Final = 3
"""The first format version with initial defaults other than null."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_DECIMAL = re.compile(r"-?[0-9]+(?:\.([0-9]+))?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]{1,9}))?")
_UTC: Final = ("+00:00", "Z")
_MICROSECOND_DIGITS: Final = 6
_UUID_LENGTH: Final = 36


def check(value: Any, type_: AnyType, what: str) -> None:  # noqa: ANN401 - any JSON value
    """Raises InvalidArgument if a default value does not match the column's type; null matches every type."""
    if value is None:
        return
    fits = _fits(value, primitive(type_)) if isinstance(type_, str) else _fits_nested(value, type_)
    if not fits:
        raise InvalidArgument(f"Cannot parse {what} to a {kind_of(type_)} value: {value!r}")


def _fits_nested(value: Any, type_: StructType | ListType | MapType) -> bool:  # noqa: ANN401 - any JSON value
    if isinstance(type_, ListType):
        fits = isinstance(value, list)
        for each in value if fits else ():
            check(each, type_.element, "a list element")
        return fits
    if not isinstance(value, dict):
        return False
    if isinstance(type_, MapType):
        return _fits_map(value, type_)
    # the fields of a struct have their own defaults, so the struct's must be null or empty
    return not value


def _fits_map(value: dict[str, Any], type_: MapType) -> bool:
    keys, values = value.get("keys"), value.get("values")
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        return False
    for each in keys:
        check(each, type_.key, "a map key")
    for each in values:
        check(each, type_.value, "a map value")
    return True


def _fits(value: Any, kind: Primitive) -> bool:  # noqa: ANN401 - any JSON value
    if kind.name == "boolean":
        return isinstance(value, bool)
    if kind.name in {"int", "long"}:
        limit = 2 ** (31 if kind.name == "int" else 63)
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if kind.name in {"float", "double"}:
        # readers in other languages distinguish 1 from 1.0
        return isinstance(value, float)
    return isinstance(value, str) and kind.name in _TEXTS and _TEXTS[kind.name](value, kind)


def _fits_decimal(text: str, kind: Primitive) -> bool:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return False
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    return len(found[1] or "") == kind.scale and len(digits) <= kind.precision


def _fits_date(text: str, _kind: Primitive) -> bool:
    return _DATE.fullmatch(text) is not None and _can(date.fromisoformat, text)


def _fits_time(text: str, kind: Primitive) -> bool:
    found = _TIME.fullmatch(text)
    if found is None or (len(found[2] or "") > _MICROSECOND_DIGITS and not kind.name.endswith("_ns")):
        return False
    return _can(time.fromisoformat, found[1])


def _fits_timestamp(text: str, kind: Primitive) -> bool:
    if kind.name.startswith("timestamptz"):
        zone = next((each for each in _UTC if text.endswith(each)), None)
        if zone is None:
            return False
        text = text.removesuffix(zone)
    day, _, clock = text.partition("T")
    return _fits_date(day, kind) and _fits_time(clock, kind)


def _can(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_TEXTS: Final[dict[str, Callable[[str, Primitive], bool]]] = {
    "string": lambda _text, _kind: True,
    "uuid": lambda text, _kind: len(text) == _UUID_LENGTH and _can(UUID, text),
    "binary": lambda text, _kind: _HEX.fullmatch(text) is not None,
    "fixed": lambda text, kind: _HEX.fullmatch(text) is not None and len(text) == 2 * kind.length,
    "decimal": _fits_decimal,
    "date": _fits_date,
    "time": _fits_time,
    "timestamp": _fits_timestamp,
    "timestamptz": _fits_timestamp,
    "timestamp_ns": _fits_timestamp,
    "timestamptz_ns": _fits_timestamp,
}
