"""What becomes of a table's changes, as properties of the table and of its namespaces say."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

PROPERTIES = ("lakewarden.cdc.mode", "cdc.mode")
MIRROR_SUFFIX = "_current"
REJECTED_SUFFIX = "__rejected"
DELETED_SUFFIX = "__deleted"


class Kind(StrEnum):
    """What the rows of a table are."""

    CHANGELOG = "changelog"
    MIRROR = "mirror"
    REJECTED = "rejected"
    DELETED = "deleted"


class Mode(StrEnum):
    """`changelog`: each change is a row; `mirror`: each row as it is now; `both`: the mirror is `<table>_current`."""

    CHANGELOG = "changelog"
    MIRROR = "mirror"
    BOTH = "both"


def mode(properties: Iterable[Mapping[str, str]], *, default: Mode) -> Mode:
    """The first that is said, from the table outwards; what is not a mode does not count."""
    for each in properties:
        for name in PROPERTIES:
            if (said := each.get(name, "").lower()) in list(Mode):
                return Mode(said)
    return default


def targets(table: tuple[str, ...], chosen: Mode) -> list[tuple[tuple[str, ...], Kind]]:
    """The tables that a table's changes are written to."""
    match chosen:
        case Mode.CHANGELOG:
            return [(table, Kind.CHANGELOG)]
        case Mode.MIRROR:
            return [(table, Kind.MIRROR)]
        case Mode.BOTH:
            return [(table, Kind.CHANGELOG), ((*table[:-1], table[-1] + MIRROR_SUFFIX), Kind.MIRROR)]


def rejected(table: tuple[str, ...]) -> tuple[str, ...]:
    """The table of what did not fit."""
    return (*table[:-1], table[-1] + REJECTED_SUFFIX)


def deleted(mirror: tuple[str, ...]) -> tuple[str, ...]:
    """The table of the rows that were deleted from a mirror: a change that comes late must not bring one back."""
    return (*mirror[:-1], mirror[-1] + DELETED_SUFFIX)
