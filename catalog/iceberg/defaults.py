"""Default values of columns: does a JSON value fit its type (spec appendix "JSON single-value serialization")."""

import re
from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any, Final
from uuid import UUID

from catalog.iceberg.primitives import Primitive, primitive
from catalog.iceberg.types import AnyType, ListType, MapType, StructType, kind_of
from lakewarden.errors import InvalidArgument

SINCE_VERSION: Final = 3
"""Initial defaults that are not null need this format version."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_DECIMAL = re.compile(r"-?\d+(?:\.(\d+))?(?:[eE][+-]?\d+)?")
_FRACTION = re.compile(r"(\.\d{1,9})")
_SIGNIFICANT_FRACTION: Final = 6
_UUID_LENGTH: Final = 36


def check(value: Any, type_: AnyType, what: str) -> None:  # noqa: ANN401 - any JSON value
    """Refuse a default that is not of the column's type (InvalidArgument); null fits every type."""
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
    by_id = {str(each.id): each for each in type_.fields}
    for key, inner in value.items():
        if key in by_id:
            check(inner, by_id[key].type, f"field {by_id[key].name}")
    return True


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
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str) and kind.name in _TEXTS and _TEXTS[kind.name](value, kind)


def _fits_decimal(text: str, kind: Primitive) -> bool:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return False
    if "e" in text.lower():
        return True
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    return len(found[1] or "") == kind.scale and len(digits) <= kind.precision


def _fits_timestamp(text: str, kind: Primitive) -> bool:
    places = len(match[0]) - 1 if (match := _FRACTION.search(text)) else 0
    if places > _SIGNIFICANT_FRACTION and not kind.name.endswith("_ns"):
        return False
    # datetime knows six digits: the format of the rest is what matters here
    short = _FRACTION.sub(lambda found: found[0][: _SIGNIFICANT_FRACTION + 1], text)
    moment = _parsed(datetime.fromisoformat, short)
    if moment is None or "T" not in text:
        return False
    return (moment.tzinfo is not None) == kind.name.startswith("timestamptz")


def _parsed(parse: Callable[[str], Any], text: str) -> Any:  # noqa: ANN401 - whatever the parser gives
    try:
        return parse(text)
    except ValueError:
        return None


_TEXTS: Final[dict[str, Callable[[str, Primitive], bool]]] = {
    "string": lambda _text, _kind: True,
    "uuid": lambda text, _kind: len(text) == _UUID_LENGTH and _parsed(UUID, text) is not None,
    "binary": lambda text, _kind: _HEX.fullmatch(text) is not None,
    "fixed": lambda text, kind: _HEX.fullmatch(text) is not None and len(text) == 2 * kind.length,
    "decimal": _fits_decimal,
    "date": lambda text, _kind: _parsed(date.fromisoformat, text) is not None,
    "time": lambda text, _kind: _parsed(time.fromisoformat, text) is not None,
    "timestamp": _fits_timestamp,
    "timestamptz": _fits_timestamp,
    "timestamp_ns": _fits_timestamp,
    "timestamptz_ns": _fits_timestamp,
}
