"""What a table or view promises to those who read it: its current schema, properties, partition and sort fields."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.iceberg.schemas import Schema
from catalog.iceberg.table_draft import TableDraft
from catalog.iceberg.transforms import Transform
from catalog.iceberg.view_draft import ViewDraft
from catalog.iceberg.wire import Members

TABLE_MEMBERS: Final = (
    *("schemas", "current-schema-id", "properties"),
    *("partition-specs", "default-spec-id", "sort-orders", "default-sort-order-id"),
)
VIEW_MEMBERS: Final = ("schemas", "versions", "current-version-id", "properties")

LaidOut = frozenset[tuple[str, str]]
"""Fields of a partition spec or sort order, by full column name and the text of the transform."""


@dataclass(frozen=True, slots=True)
class Definition:
    """`has_own_ids`: columns keep their field ids for life; a view's get new ones with each version."""

    schema: Schema
    properties: Mapping[str, str]
    partition_fields: LaidOut = frozenset()
    sort_fields: LaidOut = frozenset()
    has_own_ids: bool = True


def of_table(draft: TableDraft) -> Definition:
    schema = draft.current_schema()
    spec = draft.specs.get(draft.long("default-spec-id"))
    order = draft.orders.get(draft.long("default-sort-order-id"))
    return Definition(
        schema,
        draft.properties,
        _laid_out(schema, [(each.source_id, each.transform) for each in spec.fields] if spec else ()),
        _laid_out(schema, [(each.source_id, each.transform) for each in order.fields] if order else ()),
    )


def of_view(draft: ViewDraft) -> Definition:
    version = draft.versions[draft.long("current-version-id")]
    return Definition(draft.schemas[version.schema_id], draft.properties, has_own_ids=False)


def are_same(one: Members, other: Members, names: Collection[str]) -> bool:
    """Whether these members are written in the same way; those that no update touched are the same object."""
    pairs = ((one.get(name), other.get(name)) for name in names)
    return all(a is b or (a is not None and b is not None and bytes(a) == bytes(b)) for a, b in pairs)


def _laid_out(schema: Schema, fields: Collection[tuple[int, Transform]]) -> LaidOut:
    return frozenset(
        (schema.fields[source].name, how.text) for source, how in fields if source in schema.fields and not how.is_void
    )
