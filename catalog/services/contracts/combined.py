"""The contracts of an object and of all that it lies in, as one: the stricter rule counts, with where it was set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import UUID

from catalog.iceberg.schema_compatibility import Wanted
from catalog.iceberg.transforms import transform
from catalog.services.contracts.documents import COMMENT, Contract, LaidOutField, Verifier

Name = TypeVar("Name", str, LaidOutField)

BACKWARD: Final = frozenset({"backward", "full"})
FORWARD: Final = frozenset({"forward", "full"})


@dataclass(frozen=True, slots=True)
class Level:
    """An object on which a contract was set; `id` is the one that callers know."""

    type: str
    id: UUID
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(slots=True)
class Combined:
    """Each rule with the outermost level that sets it. Never changed once it is made."""

    backward: Level | None = None
    forward: Level | None = None
    protected_columns: dict[str, Level] = field(default_factory=dict)
    table_doc: Level | None = None
    column_docs: Level | None = None
    required_properties: dict[str, Level] = field(default_factory=dict)
    forbidden_properties: dict[str, Level] = field(default_factory=dict)
    fixed_properties: dict[str, tuple[str, Level]] = field(default_factory=dict)
    partition_fields: dict[LaidOutField, Level] = field(default_factory=dict)
    sort_fields: dict[LaidOutField, Level] = field(default_factory=dict)
    verifiers: list[tuple[Verifier, Level]] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)

    @property
    def mode(self) -> str:
        if self.backward and self.forward:
            return "full"
        return "backward" if self.backward else "forward" if self.forward else "none"

    @property
    def wanted(self) -> Wanted:
        return Wanted(backward=self.backward is not None, forward=self.forward is not None)


def combine(contracts: Iterable[tuple[Level, Contract]]) -> Combined:
    """`contracts`: outermost first."""
    found = Combined()
    for level, contract in contracts:
        _add(found, level, contract)
    _contradict(found)
    return found


def _add(found: Combined, level: Level, contract: Contract) -> None:
    if contract.schema_compatibility in BACKWARD:
        found.backward = found.backward or level
    if contract.schema_compatibility in FORWARD:
        found.forward = found.forward or level
    if contract.required_docs.table:
        found.table_doc = found.table_doc or level
    if contract.required_docs.columns:
        found.column_docs = found.column_docs or level
    _set(found.protected_columns, contract.protected_columns, level)
    _set(found.required_properties, contract.required_properties, level)
    _set(found.forbidden_properties, contract.forbidden_properties, level)
    for name, value in contract.fixed_properties.items():
        before, at = found.fixed_properties.setdefault(name, (value, level))
        if before != value:
            found.contradictions.append(
                f"the {at} fixes the property {name} to {before!r}, the {level} fixes it to {value!r}"
            )
    _set(found.partition_fields, map(_plain, contract.required_partition_fields), level)
    _set(found.sort_fields, map(_plain, contract.required_sort_fields), level)
    if contract.verifier is not None:
        found.verifiers.append((contract.verifier, level))


def _set(into: dict[Name, Level], names: Iterable[Name], level: Level) -> None:
    for name in names:
        into.setdefault(name, level)


def _plain(asked: LaidOutField) -> LaidOutField:
    """With the transform in the spelling that metadata is compared in."""
    return asked if asked.transform is None else LaidOutField(asked.source, transform(asked.transform).text)


def _contradict(found: Combined) -> None:
    wanted: Sequence[tuple[str, dict[str, Level]]] = (
        ("requires", found.required_properties),
        ("fixes", {name: level for name, (_, level) in found.fixed_properties.items()}),
        ("requires, as the documentation of tables,", {COMMENT: found.table_doc} if found.table_doc else {}),
    )
    for verb, names in wanted:
        for name in sorted(names.keys() & found.forbidden_properties.keys()):
            found.contradictions.append(
                f"the {names[name]} {verb} the property {name}, the {found.forbidden_properties[name]} forbids it"
            )
    empty = {name: level for name, (value, level) in found.fixed_properties.items() if not value}
    for name in sorted(empty.keys() & found.required_properties.keys()):
        found.contradictions.append(
            f"the {found.required_properties[name]} requires a value of the property {name}, the {empty[name]} fixes "
            "it to an empty one"
        )
