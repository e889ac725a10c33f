"""Reads table metadata files of other writers: checks them strictly, and adds members that older formats omit."""

from collections.abc import Callable
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from msgspec import Raw

from catalog.iceberg import partition_specs, schemas, sort_orders, wire
from catalog.iceberg.metadata_builder import check_log_times
from catalog.iceberg.metadata_file_decoding import open_file
from catalog.iceberg.refs import SnapshotRef
from catalog.iceberg.snapshot_updates import SnapshotDocument
from catalog.iceberg.statistics_updates import PartitionStatisticsFile, StatisticsFile
from catalog.iceberg.table_draft import MAIN, NEWEST_FORMAT, ROW_LINEAGE_SINCE, TableDraft
from catalog.iceberg.table_updates import EncryptedKey, check_uuid, clean_location
from catalog.iceberg.wire import Int32, Int64, Members, Wire
from lakewarden.errors import ValidationFailed


class LogEntry(Wire):
    timestamp_ms: Int64
    snapshot_id: Int64


class FileEntry(Wire):
    timestamp_ms: Int64
    metadata_file: str


class TableDocument(Wire):
    """A table's metadata in any format version; members that v1 may omit are optional here."""

    format_version: Int32
    location: str
    last_updated_ms: Int64
    last_column_id: Int32
    table_uuid: str | None = None
    last_sequence_number: Int64 | None = None
    next_row_id: Int64 | None = None
    schemas: list[Raw] | None = None
    schema: Raw = wire.NULL
    current_schema_id: Int32 | None = None
    partition_specs: list[Raw] | None = None
    partition_spec: list[Raw] | None = None
    default_spec_id: Int32 | None = None
    last_partition_id: Int32 | None = None
    sort_orders: list[Raw] | None = None
    default_sort_order_id: Int32 | None = None
    properties: dict[str, str] | None = None
    current_snapshot_id: Int64 | None = None
    refs: dict[str, SnapshotRef] | None = None
    snapshots: list[SnapshotDocument] | None = None
    statistics: list[StatisticsFile] | None = None
    partition_statistics: list[PartitionStatisticsFile] | None = None
    encryption_keys: list[EncryptedKey] | None = None
    snapshot_log: list[LogEntry] | None = None
    metadata_log: list[FileEntry] | None = None


_DOCUMENT = wire.decoder(TableDocument)
_REQUIRED_SINCE: Final = {
    "table-uuid": 2,
    "last-sequence-number": 2,
    "schemas": 2,
    "current-schema-id": 2,
    "partition-specs": 2,
    "default-spec-id": 2,
    "last-partition-id": 2,
    "sort-orders": 2,
    "default-sort-order-id": 2,
    "next-row-id": 3,
}


def table_members(raw: bytes) -> Members:
    """The members of complete metadata in the file's format version.

    Raises ValidationFailed if the file is not valid.
    """
    return open_file(raw, _normal, "table")


def _normal(found: Members) -> Members:
    document = wire.parse(_DOCUMENT, wire.dump(found), "it")
    version = document.format_version
    if not 1 <= version <= NEWEST_FORMAT:
        raise ValidationFailed(f"Cannot read unsupported version {version}: v1 to v{NEWEST_FORMAT} are supported")
    for name, since in _REQUIRED_SINCE.items():
        if version >= since and getattr(document, name.replace("-", "_")) is None:
            raise ValidationFailed(f"{name} must exist in format v{version}")
    # null members are removed, except current-snapshot-id, where v3 uses null for "none"
    present = {name: each for name, each in found.items() if not wire.is_null(each) or name == "current-snapshot-id"}
    draft = TableDraft(_filled(present, document), now_ms=document.last_updated_ms)
    draft.put("location", clean_location(document.location))
    _check_layout(draft)
    _check_snapshots(draft, document)
    _check_logs(document)
    if document.current_snapshot_id is None and version >= ROW_LINEAGE_SINCE:
        draft.put("current-snapshot-id", None)
    return draft.members


def _filled(found: Members, document: TableDocument) -> Members:
    """Add all members that later code relies on, from their older forms in v1 files."""
    if "table-uuid" in found:
        check_uuid(document.table_uuid or "")
    else:
        # derived from the content, so the same file always results in the same uuid
        found["table-uuid"] = wire.dump(str(uuid5(NAMESPACE_URL, f"{document.location}#{document.last_updated_ms}")))
    if document.format_version == 1:
        _fill_v1(found, document)
    else:
        found.pop("schema", None)
        found.pop("partition-spec", None)
    empty: dict[str, object] = {
        "properties": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
    }
    empty |= {"snapshot-log": [], "metadata-log": [], "current-snapshot-id": -1, "refs": {}}
    current = document.current_snapshot_id
    # writers from before branches existed have a current snapshot and no refs
    if document.refs is None and current not in {None, -1}:
        empty["refs"] = {MAIN: {"snapshot-id": current, "type": "branch"}}
    return found | {name: wire.dump(each) for name, each in empty.items() if name not in found}


def _fill_v1(found: Members, document: TableDocument) -> None:
    if document.schemas is None:
        if wire.is_null(document.schema):
            raise ValidationFailed("schemas or schema must exist in format v1")
        schema_id = schemas.read(document.schema, "schema").schema_id or 0
        found["schemas"] = wire.dump([schemas.with_id(document.schema, schema_id, "schema")])
        found["current-schema-id"] = wire.dump(schema_id)
    if document.partition_specs is None:
        if document.partition_spec is None:
            raise ValidationFailed("partition-specs or partition-spec must exist in format v1")
        fields = wire.dump({"fields": document.partition_spec})
        sent = partition_specs.read(fields, "partition-spec").fields
        # v1 files may omit field ids, which are then 1000, 1001, …
        ids = [each.field_id or position for position, each in enumerate(sent, partition_specs.FIRST_FIELD_ID)]
        found["partition-specs"] = wire.dump([partition_specs.with_ids(fields, 0, ids, "partition-spec")])
        found["default-spec-id"] = Raw(b"0")
    if document.last_partition_id is None:
        stored = (partition_specs.read(each, "partition-specs") for each in wire.items(found["partition-specs"], "it"))
        highest = max((each.last_field_id for each in stored), default=partition_specs.LAST_ID_OF_UNPARTITIONED)
        found["last-partition-id"] = wire.dump(highest)
    if document.sort_orders is None:
        found["sort-orders"] = Raw(b'[{"order-id":0,"fields":[]}]')
        found["default-sort-order-id"] = Raw(b"0")


def _check_layout(draft: TableDraft) -> None:
    _check_ids(draft, "schemas", lambda raw: schemas.read(raw, "schemas").schema_id, "current-schema-id")
    _check_ids(
        draft, "partition-specs", lambda raw: partition_specs.read(raw, "partition-specs").spec_id, "default-spec-id"
    )
    _check_ids(
        draft,
        "sort-orders",
        lambda raw: sort_orders.read(raw, "sort-orders").order_id,
        "default-sort-order-id",
    )


def _check_ids(draft: TableDraft, member: str, read: Callable[[Raw], int | None], chosen: str) -> None:
    if chosen not in draft.members:
        raise ValidationFailed(f"{chosen} must exist where {member} does")
    ids = [read(raw) for raw in draft.entries(member)]
    if None in ids or len(set(ids)) != len(ids):
        raise ValidationFailed(f"Every one of {member} must have an id of its own, got {ids}")
    if draft.long(chosen) not in ids:
        raise ValidationFailed(f"Cannot find {chosen}={draft.long(chosen)} in {member}: there are {ids}")


def _check_snapshots(draft: TableDraft, document: TableDocument) -> None:
    last = document.last_sequence_number or 0
    ids: set[int] = set()
    for each in document.snapshots or ():
        if each.snapshot_id in ids:
            raise ValidationFailed(f"Snapshot exists more than once: {each.snapshot_id}")
        if each.sequence_number > last:
            raise ValidationFailed(
                f"Invalid snapshot with sequence number {each.sequence_number} "
                f"greater than last sequence number {last}",
            )
        ids.add(each.snapshot_id)
    current = draft.current_snapshot_id
    if current is not None and current not in ids:
        raise ValidationFailed(f"Cannot find current snapshot {current} in snapshots")
    for name in draft.refs:
        ref = draft.refs.find(name)
        if ref is not None and ref.type not in {"branch", "tag"}:
            raise ValidationFailed(f"Invalid snapshot ref type of {name}: {ref.type}; it is branch or tag")
        if ref is not None and ref.snapshot_id not in ids:
            raise ValidationFailed(f"Snapshot {ref.snapshot_id} for reference {name} does not exist")
    main = draft.refs.find(MAIN)
    if (main.snapshot_id if main else None) != current:
        raise ValidationFailed(f"Current snapshot ID does not match main branch ({current} != {main})")


def _check_logs(document: TableDocument) -> None:
    times = [each.timestamp_ms for each in document.snapshot_log or ()]
    check_log_times(times, document.last_updated_ms)
    check_log_times([each.timestamp_ms for each in document.metadata_log or ()], document.last_updated_ms)
