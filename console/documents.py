"""Turns the JSON of a table's or view's metadata into what its page shows. Pure: no request, no database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

Json = Mapping[str, Any]

MAIN: Final = "main"


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a schema; `depth` counts the structs, lists and maps that it lies in."""

    id: int
    name: str
    path: str
    type: str
    required: bool
    doc: str
    depth: int
    is_identifier: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """What happened to a field between two schemas: `added`, `removed` or `changed`; texts describe both sides."""

    kind: str
    id: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class SnapshotView:
    id: int
    parent_id: int | None
    at: datetime
    operation: str
    summary: Mapping[str, str]
    refs: tuple[str, ...]
    schema_id: int | None

    def number(self, name: str) -> int | None:
        """A figure of the summary; None if the writer did not give it as a number."""
        text = self.summary.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None  # noqa: PLR2004 digits of 64 bits

    @property
    def added_records(self) -> int | None:
        return self.number("added-records")

    @property
    def deleted_records(self) -> int | None:
        return self.number("deleted-records")

    @property
    def total_records(self) -> int | None:
        return self.number("total-records")

    @property
    def total_bytes(self) -> int | None:
        return self.number("total-files-size")


def current(entries: Sequence[Json], key: str, wanted: object) -> Json:
    """The entry whose `key` has the wanted id; an empty one if there is none."""
    return next((entry for entry in entries if entry.get(key) == wanted), {})


def columns(schema: Json) -> list[Column]:
    """All fields of a schema (table spec, section `Schemas and Data Types`), nested ones after those they lie in."""
    identifiers = frozenset(schema.get("identifier-field-ids") or ())
    return list(_fields(schema.get("fields") or (), prefix="", depth=0, identifiers=identifiers))


def _fields(fields: Sequence[Json], *, prefix: str, depth: int, identifiers: frozenset[int]) -> Iterator[Column]:
    for field in fields:
        path, kind = prefix + str(field["name"]), field["type"]
        yield Column(
            id=field["id"],
            name=str(field["name"]),
            path=path,
            type=type_text(kind),
            required=bool(field.get("required")),
            doc=str(field.get("doc") or ""),
            depth=min(depth, 6),
            is_identifier=field["id"] in identifiers,
        )
        yield from _nested(kind, prefix=path + ".", depth=depth + 1, identifiers=identifiers)


def _nested(kind: Any, *, prefix: str, depth: int, identifiers: frozenset[int]) -> Iterator[Column]:  # noqa: ANN401 JSON
    if not isinstance(kind, Mapping):
        return
    if kind.get("type") == "struct":
        yield from _fields(kind.get("fields") or (), prefix=prefix, depth=depth, identifiers=identifiers)
    elif kind.get("type") == "list":
        element = {"id": kind["element-id"], "name": "element", "type": kind["element"]}
        element["required"] = kind.get("element-required")
        yield from _fields([element], prefix=prefix, depth=depth, identifiers=identifiers)
    elif kind.get("type") == "map":
        key = {"id": kind["key-id"], "name": "key", "type": kind["key"], "required": True}
        value = {"id": kind["value-id"], "name": "value", "type": kind["value"], "required": kind.get("value-required")}
        yield from _fields([key, value], prefix=prefix, depth=depth, identifiers=identifiers)


def type_text(kind: Any) -> str:  # noqa: ANN401 JSON
    """The name of a type; a nested one without its fields, which have rows of their own."""
    if not isinstance(kind, Mapping):
        return str(kind)
    if kind.get("type") == "list":
        return f"list<{type_text(kind.get('element'))}>"
    if kind.get("type") == "map":
        return f"map<{type_text(kind.get('key'))}, {type_text(kind.get('value'))}>"
    return str(kind.get("type", "unknown"))


def differences(before: Json, after: Json) -> list[Difference]:
    """By field id: a renamed field is a changed one."""
    old, new = ({column.id: column for column in columns(schema)} for schema in (before, after))
    removed = [Difference("removed", key, _described(old[key]), "") for key in old if key not in new]
    added = [Difference("added", key, "", _described(new[key])) for key in new if key not in old]
    changed = [
        Difference("changed", key, _described(old[key]), _described(new[key]))
        for key in new
        if key in old and _described(old[key]) != _described(new[key])
    ]
    return sorted([*removed, *added, *changed], key=lambda each: each.id)


def _described(column: Column) -> str:
    required = " required" if column.required else ""
    return f"{column.path}: {column.type}{required}" + (f" ({column.doc})" if column.doc else "")


def current_schema(metadata: Json) -> Json:
    return current(metadata.get("schemas") or [], "schema-id", metadata.get("current-schema-id"))


def partitioning(metadata: Json, schema: Json) -> list[tuple[str, str]]:
    """The fields of the current partition spec, with names of the schema."""
    spec = current(metadata.get("partition-specs") or [], "spec-id", metadata.get("default-spec-id"))
    return named_fields(spec, schema)


def sort_fields(metadata: Json, schema: Json) -> list[str]:
    """The fields of the current sort order, with names of the schema."""
    order = current(metadata.get("sort-orders") or [], "order-id", metadata.get("default-sort-order-id"))
    return sorting(order, schema)


def named_fields(spec: Json, schema: Json) -> list[tuple[str, str]]:
    """Name and definition of the fields of a partition spec, such as (`day`, `day(sent_at)`)."""
    names = {column.id: column.path for column in columns(schema)}
    return [
        (str(field.get("name", "")), f"{field.get('transform')}({_sources(field, names)})")
        for field in spec.get("fields") or ()
    ]


def sorting(order: Json, schema: Json) -> list[str]:
    """The fields of a sort order, such as `day(sent_at) desc, nulls last`."""
    names = {column.id: column.path for column in columns(schema)}
    return [
        f"{field.get('transform')}({_sources(field, names)}) {field.get('direction')}, "
        f"{str(field.get('null-order', '')).replace('-', ' ')}"
        for field in order.get("fields") or ()
    ]


def _sources(field: Json, names: Mapping[int, str]) -> str:
    ids = field.get("source-ids") or [field.get("source-id")]
    return ", ".join(names.get(each, f"field {each}") for each in ids)


def definition(metadata: Json) -> dict[str, str]:
    """Partitioning, sort order, branches and tags, as texts by their names."""
    schema = current_schema(metadata)
    layout = {
        "Partitioning": ", ".join(text for _, text in partitioning(metadata, schema)) or "not partitioned",
        "Sort order": ", ".join(sort_fields(metadata, schema)) or "not sorted",
    }
    refs = (metadata.get("refs") or {}).items()
    return layout | {f"{str(ref['type']).title()} {name}": f"snapshot {ref['snapshot-id']}" for name, ref in refs}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str | None, str | None]]:
    """The names whose values differ, with both; None: it is not there."""
    return [
        (name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def snapshots(metadata: Json) -> list[SnapshotView]:
    """All snapshots, newest first."""
    refs: dict[int, list[str]] = {}
    for name, ref in (metadata.get("refs") or {}).items():
        refs.setdefault(ref["snapshot-id"], []).append(name)
    found = [
        SnapshotView(
            id=each["snapshot-id"],
            parent_id=each.get("parent-snapshot-id"),
            at=moment(each["timestamp-ms"]),
            operation=str((each.get("summary") or {}).get("operation", "unknown")),
            summary={str(key): str(value) for key, value in (each.get("summary") or {}).items()},
            refs=tuple(sorted(refs.get(each["snapshot-id"], ()), key=lambda name: (name != MAIN, name))),
            schema_id=each.get("schema-id"),
        )
        for each in metadata.get("snapshots") or ()
    ]
    return sorted(found, key=lambda each: (each.at, each.id), reverse=True)


def current_snapshot(metadata: Json) -> SnapshotView | None:
    """What readers of the table see; None before the first write."""
    current_id = metadata.get("current-snapshot-id")
    return next((each for each in snapshots(metadata) if each.id == current_id), None)


def moment(milliseconds: int) -> datetime:
    """A time of the metadata; the earliest or latest one that can be shown for others."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC) if milliseconds > 0 else datetime.min.replace(tzinfo=UTC)
