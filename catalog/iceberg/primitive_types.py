"""The primitive types of Iceberg, and the format version in which each was introduced."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from lakewarden.errors import InvalidArgument

_SINCE_V3: Final = frozenset({"timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography"})
_PLAIN: Final = frozenset(
    {
        *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz"),
        *("timestamp_ns", "timestamptz_ns", "string", "uuid", "binary", "variant", "unknown"),
    },
)
_FIXED = re.compile(r"fixed\[\s*([0-9]{1,10})\s*\]", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)", re.IGNORECASE)
# blanks are stripped afterwards: patterns that skip blanks themselves backtrack for long on many blanks
_GEOMETRY = re.compile(r"geometry *(?:\(([^)]*)\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography *(?:\(([^,)]*)(?:,([^,)]*))?\))?", re.IGNORECASE)
_EDGE_ALGORITHMS: Final = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})
_DEFAULT_CRS: Final = "OGC:CRS84"
_MAX_PRECISION: Final = 38
_LONGEST_REMEMBERED: Final = 32


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type. `text` is its canonical spelling: types with the same text are equal.

    `length` is in bytes (for fixed), `precision` and `scale` are digits (for decimal); 0 for other types.
    """

    name: str
    text: str
    length: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def since_version(self) -> int:
        """The format version that introduced this type."""
        return 3 if self.name in _SINCE_V3 else 1


def primitive(text: str) -> Primitive:
    """Parse the name of a type in a schema. Raises InvalidArgument for an unknown type."""
    # long names are not cached, so clients cannot fill the memory
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parse(text)


def _parse(text: str) -> Primitive:
    lower = text.lower()
    if lower in _PLAIN:
        return Primitive(lower, lower)
    if found := _FIXED.fullmatch(text):
        length = int(found[1])
        return Primitive("fixed", f"fixed[{length}]", length=length)
    if found := _DECIMAL.fullmatch(text):
        return _decimal(int(found[1]), int(found[2]))
    if found := _GEOMETRY.fullmatch(text):
        crs = (found[1] or "").strip()
        plain = crs.upper() in {"", _DEFAULT_CRS}
        return Primitive("geometry", "geometry" if plain else f"geometry({crs})")
    if found := _GEOGRAPHY.fullmatch(text):
        return _geography(found[1], found[2])
    raise InvalidArgument(f"Cannot parse type string to primitive: {text}")


def _decimal(precision: int, scale: int) -> Primitive:
    if precision > _MAX_PRECISION:
        raise InvalidArgument(f"Decimals with precision larger than {_MAX_PRECISION} are not supported: {precision}")
    if precision < 1:
        raise InvalidArgument(f"Invalid decimal({precision}, {scale}): the precision must be at least 1")
    return Primitive("decimal", f"decimal({precision}, {scale})", precision=precision, scale=scale)


def _geography(crs: str | None, algorithm: str | None) -> Primitive:
    edges = "spherical" if algorithm is None else algorithm.strip().lower()
    if edges not in _EDGE_ALGORITHMS:
        known = ", ".join(sorted(_EDGE_ALGORITHMS))
        raise InvalidArgument(f"Invalid edge interpolation algorithm: {edges}; known are {known}")
    system = (crs or "").strip() or _DEFAULT_CRS
    if edges != "spherical":
        return Primitive("geography", f"geography({system}, {edges})")
    plain = system.upper() == _DEFAULT_CRS
    return Primitive("geography", "geography" if plain else f"geography({system})")


_remembered = lru_cache(maxsize=1024)(_parse)
