"""Builds the first metadata of a table: from a createTable request, or empty for a creation by updates."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from msgspec import Raw

from catalog.iceberg import partition_specs, schemas, sort_orders, wire
from catalog.iceberg.fresh_field_ids import FreshFieldIds
from catalog.iceberg.partition_specs import PartitionField
from catalog.iceberg.properties import whole_number
from catalog.iceberg.sort_orders import SortField
from catalog.iceberg.table_draft import NO_SNAPSHOT, ROW_LINEAGE_SINCE, TableDraft
from catalog.iceberg.table_updates import check_format_version, check_uuid, clean_location
from catalog.iceberg.wire import Json, Members, Wire
from lakewarden.errors import InvalidArgument, ValidationFailed

DEFAULT_FORMAT_VERSION: Final = 2
FORMAT_VERSION: Final = "format-version"
RESERVED_PROPERTIES: Final = frozenset(
    {
        FORMAT_VERSION,
        *("uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary"),
        *("current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order"),
    },
)
"""Properties that have a meaning in the request but are never stored (reserved in Iceberg's Java library)."""
NEW_TABLE_PROPERTIES: Final = {"write.parquet.compression-codec": "zstd"}
"""Defaults that are stored in new tables, so a change of the default does not affect existing tables."""
_COMMIT_PROPERTIES: Final = (
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
)
_COLUMN_METRICS: Final = "write.metadata.metrics.column."


class CreateTable(Wire):
    schema: Raw
    partition_spec: Raw = wire.NULL
    write_order: Raw = wire.NULL
    properties: dict[str, str] | None = None


_NO_FIELDS: Final = Raw(b'{"fields":[]}')
_REQUEST = wire.decoder(CreateTable)


def empty_table(format_version: int, *, uuid: str) -> Members:
    """The members of an empty table, in the order in which they are written."""
    check_format_version(format_version)
    check_uuid(uuid)
    return _empty(format_version) | {"table-uuid": wire.dump(uuid)}


@cache
def _empty(format_version: int) -> Members:
    document: dict[str, object] = {"format-version": format_version, "table-uuid": "", "location": ""}
    if format_version > 1:
        document["last-sequence-number"] = 0
    document |= {"last-updated-ms": 0, "last-column-id": 0, "current-schema-id": 0, "schemas": []}
    document |= {
        "default-spec-id": 0,
        "partition-specs": [],
        "last-partition-id": partition_specs.LAST_ID_OF_UNPARTITIONED,
    }
    document |= {"default-sort-order-id": 0, "sort-orders": [], "properties": {}}
    has_row_lineage = format_version >= ROW_LINEAGE_SINCE
    document["current-snapshot-id"] = None if has_row_lineage else NO_SNAPSHOT
    if has_row_lineage:
        document["next-row-id"] = 0
    document |= {"refs": {}, "snapshots": [], "statistics": [], "partition-statistics": []}
    document |= {"snapshot-log": [], "metadata-log": []}
    return {name: wire.dump(each) for name, each in document.items()}


def new_table(
    request: Json, *, uuid: str, location: str, now_ms: int, default_version: int = DEFAULT_FORMAT_VERSION
) -> TableDraft:
    """A draft of a table from a createTable request, with new ids.

    Raises BadRequest for a malformed request, InvalidArgument or ValidationFailed if it breaks a rule.
    """
    wire.check_text(request, "request")
    wanted = wire.parse(_REQUEST, request, "request")
    asked = wanted.properties or {}
    version = _format_version(asked, default_version)
    draft = TableDraft(empty_table(version, uuid=uuid), now_ms=now_ms, is_new=True)
    draft.put("location", clean_location(location))
    fresh = _set_schema(draft, wanted.schema)
    _set_spec(draft, _NO_FIELDS if wire.is_null(wanted.partition_spec) else wanted.partition_spec, fresh)
    _set_order(draft, _NO_FIELDS if wire.is_null(wanted.write_order) else wanted.write_order, fresh)
    stored = {name: each for name, each in asked.items() if name not in RESERVED_PROPERTIES}
    _check_properties(stored, draft)
    draft.properties.update(NEW_TABLE_PROPERTIES | stored)
    return draft


def _format_version(properties: dict[str, str], default: int) -> int:
    text = properties.get(FORMAT_VERSION, str(default))
    version = whole_number(text)
    if version is None:
        raise InvalidArgument(f"Invalid table property {FORMAT_VERSION}: {text}; it is 1, 2 or 3")
    return version


def _set_schema(draft: TableDraft, raw: Raw) -> FreshFieldIds:
    sent = schemas.read(raw, "schema")
    schemas.check_size(sent)
    schemas.check_version(sent, draft.format_version)
    fresh = FreshFieldIds()
    # clients number fields by their own rules; ids from 1 without gaps are the same whichever engine creates the table
    stored = fresh.assign(raw, schema_id=0)
    draft.put("schemas", [stored])
    draft.put("last-column-id", fresh.last_id)
    return fresh


def _set_spec(draft: TableDraft, raw: Raw, fresh: FreshFieldIds) -> None:
    sent = partition_specs.read(raw, "partition-spec")
    found = _on_fresh_columns(raw, sent.fields, fresh, what="partition")
    ids = list(range(partition_specs.FIRST_FIELD_ID, partition_specs.FIRST_FIELD_ID + len(sent.fields)))
    stored = partition_specs.with_ids(found, 0, ids, "partition-spec")
    spec = partition_specs.read(stored, "partition-spec")
    if spec.fields:
        partition_specs.check_names(spec, draft.current_schema())
    draft.put("partition-specs", [stored])
    draft.put("last-partition-id", spec.last_field_id)


def _set_order(draft: TableDraft, raw: Raw, fresh: FreshFieldIds) -> None:
    sent = sort_orders.read(raw, "write-order")
    found = _on_fresh_columns(raw, sent.fields, fresh, what="sort")
    order_id = sort_orders.UNSORTED_ID if sent.is_unsorted else sort_orders.FIRST_ID
    stored = sort_orders.with_id(found, order_id, "write-order")
    draft.put("sort-orders", [stored])
    draft.put("default-sort-order-id", order_id)


def _check_properties(properties: dict[str, str], draft: TableDraft) -> None:
    """Checks that Iceberg's Java library makes for new tables only; existing ones may have such values."""
    for name in _COMMIT_PROPERTIES:
        text = properties.get(name, "0")
        number = whole_number(text)
        if number is None:
            raise ValidationFailed(f"Table property {name} must have integer value, got {text}")
        if number < 0:
            raise ValidationFailed(f"Table property {name} must have non negative integer value, got {text}")
    for name in properties:
        column = name.removeprefix(_COLUMN_METRICS)
        if column != name and column not in draft.current_schema().ids_by_name:
            raise ValidationFailed(
                f"Invalid metrics config, could not find column {column} from table prop {name} in schema",
            )


def _on_fresh_columns(raw: Raw, sent: Sequence[PartitionField | SortField], fresh: FreshFieldIds, *, what: str) -> Raw:
    """The spec or order with the new ids of its columns. Raises ValidationFailed for a column that is not there."""
    found = wire.members(raw, what)
    fields = [wire.members(each, what) for each in wire.items(found["fields"], what)]
    for each, field in zip(fields, sent, strict=True):
        if field.source_id not in fresh.of:
            raise ValidationFailed(f"Cannot find source column for {what} field: {field}")
        each["source-id"] = wire.dump(fresh.of[field.source_id])
    return wire.dump(found | {"fields": fields})
