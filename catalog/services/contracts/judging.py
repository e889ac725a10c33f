"""Judges a change by the built-in rules of the contracts that apply to it. No I/O."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from catalog.iceberg.definitions import Definition, LaidOut
from catalog.iceberg.schema_compatibility import breaks, promotes, shown_type
from catalog.iceberg.schemas import Field, Schema
from catalog.services.contracts.combined import Combined, Level
from catalog.services.contracts.documents import COMMENT, LaidOutField

_WITHOUT_DOCS: Final = frozenset({"list", "map"})


class Violation(NamedTuple):
    """`field` is the column or property, empty for the object itself; `level` is where the rule was set."""

    rule: str
    field: str
    reason: str
    level: Level

    def __str__(self) -> str:
        about = f"{self.field!r} " if self.field else ""
        return f"{about}{self.reason} (rule {self.rule}, set on {self.level})"


def judge(before: Definition | None, after: Definition, rules: Combined) -> list[Violation]:
    """What the change from `before` (None: the object is new, or new in this place) violates.

    What the object violated before, and still does in the same way, is not counted: an old table must be usable.
    """
    if before is None:
        return list(_of_state(after, rules))
    known = set(_of_state(before, rules))
    return [*_of_change(before, after, rules), *(each for each in _of_state(after, rules) if each not in known)]


def _of_change(before: Definition, after: Definition, rules: Combined) -> Iterator[Violation]:
    by_id = before.has_own_ids and after.has_own_ids
    level = rules.backward or rules.forward
    if level is not None:
        rule = f"schema-compatibility {rules.mode}"
        for column, reason in breaks(before.schema, after.schema, rules.wanted, by_id=by_id):
            yield Violation(rule, column, reason, level)
    for name, at in rules.protected_columns.items():
        if name in before.schema.ids_by_name:
            reason_or_none = _lost(before.schema, after.schema, name, by_id=by_id)
            if reason_or_none:
                yield Violation("protected-columns", name, reason_or_none, at)


def _lost(before: Schema, after: Schema, name: str, *, by_id: bool) -> str | None:
    old = before.fields[before.ids_by_name[name]]
    new = after.fields.get(old.id if by_id else after.ids_by_name.get(name, -1))
    if new is None:
        return "would be dropped"
    if new.name != old.name:
        return f"would be renamed to {new.name}"
    if (new.kind, new.type) != (old.kind, old.type):
        is_wider = old.type is not None and new.type is not None and promotes(old.type, new.type)
        return f"would become {shown_type(new)} instead of {shown_type(old)}{', a wider type' if is_wider else ''}"
    return None


def _of_state(after: Definition, rules: Combined) -> Iterator[Violation]:
    yield from _of_docs(after, rules)
    yield from _of_properties(after.properties, rules)
    if after.has_own_ids:  # a view has neither
        yield from _of_layout(after.partition_fields, rules.partition_fields, "partition")
        yield from _of_layout(after.sort_fields, rules.sort_fields, "sort")


def _of_docs(after: Definition, rules: Combined) -> Iterator[Violation]:
    if rules.table_doc and not after.properties.get(COMMENT, "").strip():
        yield Violation(
            "required-docs", "", f"is not documented: its property {COMMENT!r} is missing or empty", rules.table_doc
        )
    if rules.column_docs:
        for each in after.schema.fields.values():
            if _can_have_doc(after.schema, each) and not (each.doc or "").strip():
                yield Violation("required-docs", each.name, "has no doc", rules.column_docs)


def _can_have_doc(schema: Schema, field: Field) -> bool:
    """The elements of lists, and the keys and values of maps, have none."""
    return field.parent is None or schema.fields[field.parent].kind not in _WITHOUT_DOCS


def _of_properties(properties: Mapping[str, str], rules: Combined) -> Iterator[Violation]:
    for name, level in rules.required_properties.items():
        if not properties.get(name, "").strip():
            yield Violation("required-properties", name, "is missing or empty", level)
    for name, level in rules.forbidden_properties.items():
        if name in properties:
            yield Violation("forbidden-properties", name, f"must not be set, and is {properties[name][:80]!r}", level)
    for name, (value, level) in rules.fixed_properties.items():
        if properties.get(name) != value:
            found = f"is {properties[name][:80]!r}" if name in properties else "is missing"
            yield Violation("fixed-properties", name, f"must be {value[:80]!r}, and {found}", level)


def _of_layout(fields: LaidOut, wanted: Mapping[LaidOutField, Level], what: str) -> Iterator[Violation]:
    for each, level in wanted.items():
        if not any(each.source == source and each.transform in {None, how} for source, how in fields):
            yield Violation(f"required-{what}-fields", str(each), f"is not a {what} field", level)
