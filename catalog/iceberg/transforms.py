"""Transforms of partition and sort fields: how they are written, and which source types each accepts."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from lakewarden.errors import InvalidArgument

_WITH_WIDTH = re.compile(r"(\w+)\[([0-9]+)\]")
_DAYS: Final = frozenset({"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_HOURS: Final = _DAYS - {"date"}
_TRUNCATE: Final = frozenset({"int", "long", "decimal", "string", "binary"})
_BUCKET: Final = _DAYS | _TRUNCATE | {"time", "fixed", "uuid"}
_NOT_IDENTITY: Final = frozenset({"variant", "geometry", "geography"})
_SOURCES: Final = {
    "bucket": _BUCKET,
    "truncate": _TRUNCATE,
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _HOURS,
}
_WIDTH_NAMES: Final = {"bucket": "number of buckets", "truncate": "truncate width"}
_MAX_WIDTH: Final = 2**31 - 1
_MAX_DIGITS: Final = 10
_LONGEST_REMEMBERED: Final = 32


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform. `text` is its canonical spelling: transforms with the same text are equal."""

    name: str
    text: str

    @property
    def is_void(self) -> bool:
        """Whether it is `void`, which always returns null and accepts any source, even a dropped column."""
        return self.name == "void"

    def takes(self, type_name: str) -> bool:
        """Whether the transform accepts a column of this primitive type (spec table "Partition Transforms")."""
        if self.name == "identity":
            return type_name not in _NOT_IDENTITY
        # an unknown transform is accepted, because a newer engine may support it
        sources = _SOURCES.get(self.name)
        return sources is None or type_name in sources


def transform(text: str) -> Transform:
    """Parse a transform; unknown ones are accepted. Raises InvalidArgument if a width is not positive."""
    # long texts are not cached, so clients cannot fill the memory
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parse(text)


def _parse(text: str) -> Transform:
    if (found := _WITH_WIDTH.fullmatch(text)) and found[1].lower() in _WIDTH_NAMES:
        return _with_width(found[1].lower(), found[2])
    lower = text.lower()
    if lower in _WIDTH_NAMES:
        raise InvalidArgument(f"Invalid transform {text}: it needs a width, as in {lower}[16]")
    known = lower in _SOURCES or lower in {"identity", "void"}
    return Transform(lower, lower) if known else Transform("", text)


def _with_width(name: str, digits: str) -> Transform:
    # Python refuses to parse numbers of more than 4,300 digits, and is slow below that
    width = int(digits) if len(digits) <= _MAX_DIGITS else _MAX_WIDTH + 1
    if not 0 < width <= _MAX_WIDTH:
        limit = "> 0" if width == 0 else f"<= {_MAX_WIDTH}"
        raise InvalidArgument(f"Invalid {_WIDTH_NAMES[name]}: {digits} (must be {limit})")
    return Transform(name, f"{name}[{width}]")


_remembered = lru_cache(maxsize=256)(_parse)
