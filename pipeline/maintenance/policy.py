"""What may be done to a table, and from when on: properties of the table, of its namespaces, of the warehouse.

The first level that says something counts, from the table outwards: the table's properties, those of its namespaces,
the warehouse's and the server's defaults in the configuration, the defaults below.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.config.maintenance import MaintenanceConfig
from lakewarden.errors import InvalidArgument

PREFIX = "lakewarden.maintenance."
KIND = "lakewarden.cdc.kind"
"""A property that the pipeline gives to the tables that it makes."""

PIPELINE_SNAPSHOTS = 1000
"""That many a table of the pipeline keeps: a flush each second would make 400,000 in five days."""

MEBIBYTE = 1024 * 1024
_TARGET = "write.target-file-size-bytes"
_MAX_AGE = "history.expire.max-snapshot-age-ms"
_MIN_KEPT = "history.expire.min-snapshots-to-keep"
_LARGEST = 2**62


class Operation(StrEnum):
    """In the order in which they run: each finds more to do after the one before it."""

    REWRITE_DATA_FILES = "rewrite-data-files"
    REWRITE_POSITION_DELETES = "rewrite-position-delete-files"
    REWRITE_MANIFESTS = "rewrite-manifests"
    EXPIRE_SNAPSHOTS = "expire-snapshots"
    REMOVE_ORPHAN_FILES = "remove-orphan-files"


@dataclass(frozen=True)
class Policy:
    """Counts are of files; `target_bytes`: the size of a full data file; `max_files`: the most that a pass rewrites.

    `hours`: the hours of the day (UTC) in which operations begin, from the first one to before the second one, which
    may be on the next day.
    """

    is_enabled: bool
    operations: tuple[Operation, ...] = tuple(Operation)
    small_files: int = 20
    delete_files: int = 10
    manifests: int = 50
    max_files: int = 2000
    target_bytes: int = 512 * MEBIBYTE
    snapshot_age_ms: int = 5 * 86_400_000
    min_snapshots: int = 1
    max_snapshots: int = _LARGEST
    orphan_age_hours: int = 72
    every_minutes: int = 60
    orphans_every_minutes: int = 1440
    hours: tuple[int, int] = (0, 24)

    @property
    def small_bytes(self) -> int:
        """A data file below this size is small: the procedure's own default share of the target."""
        return self.target_bytes * 3 // 4

    def allows(self, at_s: float) -> bool:
        """Whether operations may begin at this time, in seconds since 1970."""
        first, end = self.hours
        hour = int(at_s) % 86_400 // 3600
        return first <= hour < end if first < end else hour >= first or hour < end

    def interval_s(self, operation: Operation) -> int:
        minutes = self.orphans_every_minutes if operation is Operation.REMOVE_ORPHAN_FILES else self.every_minutes
        return minutes * 60


def resolve(table: Mapping[str, str], *outer: Mapping[str, str]) -> Policy:
    """The policy of a table. Raises `InvalidArgument` that names the property, its value and what would be right."""
    levels = (table, *outer)
    return Policy(
        # Elsewhere compaction costs money that nobody has asked to spend.
        is_enabled=_boolean(levels, "enabled", default=KIND in table),
        operations=_operations(levels),
        small_files=_number(levels, "small-files", Policy.small_files, least=2),
        delete_files=_number(levels, "delete-files", Policy.delete_files, least=2),
        manifests=_number(levels, "manifests", Policy.manifests, least=2),
        max_files=_number(levels, "max-files", Policy.max_files, least=2),
        target_bytes=_number((table,), _TARGET, Policy.target_bytes, least=MEBIBYTE // 16),
        snapshot_age_ms=_snapshot_age(levels, table),
        min_snapshots=_number(
            levels, "min-snapshots", _number((table,), _MIN_KEPT, Policy.min_snapshots, least=1), least=1
        ),
        max_snapshots=_number(
            levels, "max-snapshots", PIPELINE_SNAPSHOTS if KIND in table else Policy.max_snapshots, least=1
        ),
        # The procedure refuses less, because the files of a commit that is under way are not yet in any snapshot.
        orphan_age_hours=_number(levels, "orphan-age-hours", Policy.orphan_age_hours, least=24),
        every_minutes=_number(levels, "every-minutes", Policy.every_minutes, least=1),
        orphans_every_minutes=_number(levels, "orphans-every-minutes", Policy.orphans_every_minutes, least=1),
        hours=_hours(levels),
    )


_KNOWN = {
    "enabled",
    "operations",
    "small-files",
    "delete-files",
    "manifests",
    "max-files",
    "snapshot-age-hours",
    "min-snapshots",
    "max-snapshots",
    "orphan-age-hours",
    "every-minutes",
    "orphans-every-minutes",
    "hours",
}


def require_known(properties: Mapping[str, str], *, where: str) -> None:
    """Raises `InvalidArgument` for a name that no policy has: in the configuration it can only be a mistake."""
    for name in properties:
        if name.removeprefix(PREFIX) not in _KNOWN or not name.startswith(PREFIX):
            names = ", ".join(sorted(_KNOWN))
            raise InvalidArgument(f"{where}: {name!r} is not a property of a policy: {PREFIX} and one of {names}.")
    resolve(properties)


def of_warehouse(config: MaintenanceConfig, name: str) -> Mapping[str, str]:
    """The properties that the configuration gives to the warehouse `<project>/<name>`. Raises `InvalidArgument`."""
    policies = config.warehouse_policies
    own = policies.get(name) or policies.get(name.partition("/")[2]) or {}
    require_known(config.policy, where="LAKEWARDEN__MAINTENANCE__POLICY")
    require_known(own, where=f"LAKEWARDEN__MAINTENANCE__WAREHOUSE_POLICIES, {name}")
    return {**config.policy, **own}


def _snapshot_age(levels: Iterable[Mapping[str, str]], table: Mapping[str, str]) -> int:
    hours = _number(levels, "snapshot-age-hours", 0, least=1)
    return hours * 3_600_000 if hours else _number((table,), _MAX_AGE, Policy.snapshot_age_ms, least=0)


def _found(levels: Iterable[Mapping[str, str]], name: str) -> tuple[str, str] | None:
    """The property's whole name, and its value on the innermost level that has it."""
    key = name if "." in name else PREFIX + name
    return next(((key, level[key]) for level in levels if key in level), None)


def _boolean(levels: Iterable[Mapping[str, str]], name: str, *, default: bool) -> bool:
    if (found := _found(levels, name)) is None:
        return default
    key, value = found
    if value.lower() not in {"true", "false"}:
        raise InvalidArgument(f"The property {key} is {value!r}; it must be true or false.")
    return value.lower() == "true"


def _number(levels: Iterable[Mapping[str, str]], name: str, default: int, *, least: int) -> int:
    if (found := _found(levels, name)) is None:
        return default
    key, value = found
    if not (value.isascii() and value.isdecimal()) or not least <= int(value) <= _LARGEST:
        raise InvalidArgument(f"The property {key} is {value!r}; it must be a whole number, {least} or more.")
    return int(value)


def _operations(levels: Iterable[Mapping[str, str]]) -> tuple[Operation, ...]:
    if (found := _found(levels, "operations")) is None:
        return tuple(Operation)
    key, value = found
    wanted = {each.strip() for each in value.split(",") if each.strip()}
    if unknown := wanted - set(Operation):
        raise InvalidArgument(f"The property {key} names {min(unknown)!r}; there are {', '.join(Operation)}.")
    return tuple(each for each in Operation if each in wanted)


def _hours(levels: Iterable[Mapping[str, str]]) -> tuple[int, int]:
    if (found := _found(levels, "hours")) is None:
        return Policy.hours
    key, value = found
    match = re.fullmatch(r"([0-9]{1,2})-([0-9]{1,2})", value)
    first, end = (int(match[1]), int(match[2])) if match else (0, 0)
    if first == end or first > 23 or end > 24:  # noqa: PLR2004  a day
        raise InvalidArgument(f"The property {key} is {value!r}; it must be two hours of the day in UTC, like 22-5.")
    return first, end
