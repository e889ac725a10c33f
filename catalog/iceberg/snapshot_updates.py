"""Updates of snapshots: add-snapshot, remove-snapshots."""

from typing import Final

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.ref_updates import RemoveSnapshotRef, remove_snapshot_ref
from catalog.iceberg.snapshots import SnapshotHead
from catalog.iceberg.statistics_updates import forget_statistics
from catalog.iceberg.table_draft import NO_SNAPSHOT, ROW_LINEAGE_SINCE, TableDraft
from catalog.iceberg.wire import Int32, Int64, Wire
from lakewarden.errors import BadRequest, InvalidArgument, StaleUpdate, ValidationFailed

_MAX_LONG: Final = 2**63 - 1


class SnapshotDocument(Wire):
    snapshot_id: Int64
    timestamp_ms: Int64
    parent_snapshot_id: Int64 | None = None
    sequence_number: Int64 = 0
    manifest_list: str | None = None
    manifests: list[str] | None = None
    summary: dict[str, str] | None = None
    schema_id: Int32 | None = None
    first_row_id: Int64 | None = None
    added_rows: Int64 | None = None
    key_id: str | None = None


class AddSnapshot(Wire):
    snapshot: Raw


class RemoveSnapshots(Wire):
    snapshot_ids: list[Int64]


_SNAPSHOT = wire.decoder(SnapshotDocument)


def add_snapshot(draft: TableDraft, update: AddSnapshot) -> None:
    """Append a snapshot. Raises StaleUpdate if it was built on an older state of the table."""
    snapshot = wire.parse(_SNAPSHOT, update.snapshot, "snapshot")
    _check_document(snapshot, draft.format_version)
    _check_may_add(draft, snapshot)
    if draft.format_version == 1:
        # v1 has no sequence numbers, and its readers treat every snapshot as number 0
        if snapshot.sequence_number != 0:
            raise InvalidArgument(f"Sequence number must be 0 in v1: {snapshot.sequence_number}")
    else:
        draft.put("last-sequence-number", snapshot.sequence_number)
    if draft.format_version >= ROW_LINEAGE_SINCE:
        _assign_rows(draft, snapshot)
    head = SnapshotHead(snapshot.snapshot_id, snapshot.timestamp_ms, snapshot.sequence_number)
    draft.snapshots.add(head, wire.dump(wire.members(update.snapshot, "snapshot")))
    draft.changed = True


def _check_document(snapshot: SnapshotDocument, format_version: int) -> None:
    if snapshot.snapshot_id == NO_SNAPSHOT:
        raise InvalidArgument(f"Invalid snapshot id {NO_SNAPSHOT}: it stands for no snapshot")
    if format_version == 1:
        if snapshot.manifest_list is None and snapshot.manifests is None:
            raise BadRequest("snapshot: Object missing required field `manifest-list`")
    elif snapshot.manifest_list is None:
        raise BadRequest("snapshot: Object missing required field `manifest-list`")
    elif snapshot.summary is None:
        raise BadRequest("snapshot: Object missing required field `summary`")
    elif "operation" not in snapshot.summary:
        raise BadRequest("snapshot: Object missing required field `operation` - at `$.summary`")
    for name, number in (("first-row-id", snapshot.first_row_id), ("added-rows", snapshot.added_rows)):
        if number is not None and number < 0:
            raise InvalidArgument(f"Invalid {name} (cannot be negative): {number}")
    if snapshot.first_row_id is not None and snapshot.added_rows is None:
        raise InvalidArgument("Invalid added-rows (required when first-row-id is set): null")


def _check_may_add(draft: TableDraft, snapshot: SnapshotDocument) -> None:
    if draft.is_new:
        for entries, name in ((draft.schemas, "schema"), (draft.specs, "partition spec"), (draft.orders, "sort order")):
            if not entries:
                raise ValidationFailed(f"Attempting to add a snapshot before a {name} is added")
    if snapshot.snapshot_id in draft.snapshots.heads:
        raise ValidationFailed(f"Snapshot already exists for id: {snapshot.snapshot_id}")
    last = draft.long("last-sequence-number")
    if draft.format_version == 1 or snapshot.sequence_number > last:
        return
    # a snapshot without a parent may have the table's last sequence number, but not a smaller one
    if snapshot.parent_snapshot_id is not None or snapshot.sequence_number < last:
        raise StaleUpdate(
            f"Cannot add snapshot with sequence number {snapshot.sequence_number} "
            f"older than last sequence number {last}",
        )


def _assign_rows(draft: TableDraft, snapshot: SnapshotDocument) -> None:
    """Row lineage: the snapshot's rows have ids from `first-row-id` on; `next-row-id` becomes the id after them."""
    if snapshot.first_row_id is None:
        raise ValidationFailed("Cannot add a snapshot: first-row-id is null")
    next_row_id = draft.long("next-row-id")
    if snapshot.first_row_id < next_row_id:
        raise StaleUpdate(
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {snapshot.first_row_id} < {next_row_id}",
        )
    # computed from first-row-id, not from next-row-id: the snapshot may leave a gap, and next-row-id must exceed all
    # ids
    behind = snapshot.first_row_id + (snapshot.added_rows or 0)
    if behind > _MAX_LONG:
        raise InvalidArgument(f"Invalid added-rows: row ids end at {_MAX_LONG}, this snapshot's at {behind}")
    draft.put("next-row-id", behind)


def remove_snapshots(draft: TableDraft, update: RemoveSnapshots) -> None:
    """Remove snapshots, their statistics, and the refs that point to them."""
    gone = draft.snapshots.remove(set(update.snapshot_ids))
    if not gone:
        return
    forget_statistics(draft, gone)
    for name in draft.refs.names_of(gone):
        remove_snapshot_ref(draft, RemoveSnapshotRef(name))
    draft.changed = True
