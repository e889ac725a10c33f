"""Locations in the normal form of their profile: a comparison of texts decides whether one contains another."""

from collections.abc import Iterable


def is_in(location: str, place: str) -> bool:
    """Whether `location` is below `place`, and not equal to it."""
    return location.startswith(f"{place}/")


def is_at_or_in(location: str, place: str) -> bool:
    return location == place or is_in(location, place)


def overlap(one: str, other: str) -> bool:
    return is_at_or_in(one, other) or is_at_or_in(other, one)


def around(location: str) -> list[str]:
    """`location` and every folder that contains it."""
    parts = location.split("/")
    return ["/".join(parts[:count]) for count in range(3, len(parts) + 1)]


def range_below(location: str) -> dict[str, str]:
    """From which text on (inclusive) and to which (exclusive), byte by byte, all that lies below `location` sorts."""
    return {"from": f"{location}/", "to": location + chr(ord("/") + 1)}


def outermost(places: Iterable[str]) -> list[str]:
    """Those that lie in no other of them."""
    found = set(places)
    return sorted(each for each in found if not any(is_in(each, other) for other in found))
