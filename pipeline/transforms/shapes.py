"""What types the JSON of events has, to be merged into the type of a column.

A shape is JSON itself: "int" (32 bits), "long", "double", "boolean", "string", {"list": shape},
{"struct": {field: shape}}, or None where nothing is known: null, an empty list's element, what is nested too deep.
"""

from decimal import Decimal
from typing import Any

Shape = str | dict[str, Any] | None

MAX_DEPTH = 32
INT32 = range(-(2**31), 2**31)
_NUMBERS = ("int", "long", "double")


def shape_of(value: object, depth: int = 0) -> Shape:
    """The shape of a decoded JSON value, whose numbers with a point or an exponent are `Decimal`s."""
    match value:
        case None:
            return None
        case str():
            return "string"
        case bool():
            return "boolean"
        case int():
            return "int" if value in INT32 else "long"
        case Decimal():
            return "double"
        case dict():
            nested = depth < MAX_DEPTH
            return {"struct": {name: shape_of(each, depth + 1) for name, each in value.items()} if nested else {}}
        case list():
            element: Shape = None
            if depth < MAX_DEPTH:
                for each in value:
                    element = merged(element, shape_of(each, depth + 1))
            return {"list": element}
        case _:
            raise TypeError(f"{type(value).__name__} does not come from JSON")


def merged(first: Shape, second: Shape) -> Shape:
    """The shape that holds both; where they contradict each other, the first one, because it came first."""
    if first == second or second is None:
        return first
    if first is None:
        return second
    if isinstance(first, str) and isinstance(second, str):
        if first in _NUMBERS and second in _NUMBERS:
            return max(first, second, key=_NUMBERS.index)
        return first
    if isinstance(first, dict) and isinstance(second, dict):
        if "list" in first and "list" in second:
            return {"list": merged(first["list"], second["list"])}
        if "struct" in first and "struct" in second:
            return {"struct": merged_fields(first["struct"], second["struct"])}
    return first


def merged_fields(first: dict[str, Shape], second: dict[str, Shape]) -> dict[str, Shape]:
    """All fields of both, those of the first one before the others."""
    return first | {name: merged(first.get(name), shape) for name, shape in second.items()}
