"""Updates of branches and tags: set-snapshot-ref, remove-snapshot-ref."""

from typing import Final

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.refs import SnapshotRef
from catalog.iceberg.snapshot_log import LogEntry
from catalog.iceberg.snapshots import SnapshotHead
from catalog.iceberg.table_draft import MAIN, TableDraft
from catalog.iceberg.wire import Int32, Int64, Wire
from lakewarden.errors import InvalidArgument, ValidationFailed


class SetSnapshotRef(Wire):
    ref_name: str
    snapshot_id: Int64
    type: str
    min_snapshots_to_keep: Int32 | None = None
    max_snapshot_age_ms: Int64 | None = None
    max_ref_age_ms: Int64 | None = None


class RemoveSnapshotRef(Wire):
    ref_name: str


def set_snapshot_ref(draft: TableDraft, update: SetSnapshotRef, raw: wire.Json) -> None:
    """Create or move a branch or tag; moving `main` also changes the current snapshot and the snapshot log."""
    _check_retention(update)
    name, snapshot_id = update.ref_name, update.snapshot_id
    ref = SnapshotRef(
        snapshot_id,
        update.type.lower(),
        update.min_snapshots_to_keep,
        update.max_snapshot_age_ms,
        update.max_ref_age_ms,
    )
    # an equal ref changes nothing, and must not cause a new metadata file
    if draft.refs.find(name) == ref:
        return
    head = draft.snapshots.heads.get(snapshot_id)
    if head is None:
        raise ValidationFailed(f"Cannot set {name} to unknown snapshot: {snapshot_id}")
    if name == MAIN:
        _make_current(draft, head)
    draft.refs.put(name, snapshot_id, _ref_document(ref, raw))
    draft.changed = True


def _check_retention(update: SetSnapshotRef) -> None:
    kind = update.type.lower()
    if kind not in {"branch", "tag"}:
        raise InvalidArgument(f"Invalid snapshot ref type: {update.type}; it is branch or tag")
    if update.ref_name == MAIN and kind != "branch":
        raise ValidationFailed(f"Cannot make {MAIN} a tag: it must be a branch")
    limits = (
        ("Min snapshots to keep", "minSnapshotsToKeep", update.min_snapshots_to_keep),
        ("Max snapshot age", "maxSnapshotAgeMs", update.max_snapshot_age_ms),
        ("Max reference age", "", update.max_ref_age_ms),
    )
    for words, branch_only, number in limits:
        if number is not None and branch_only and kind == "tag":
            raise InvalidArgument(f"Tags do not support setting {branch_only}")
        if number is not None and number <= 0:
            raise InvalidArgument(f"{words} must be greater than 0, got {number}")


def _make_current(draft: TableDraft, head: SnapshotHead) -> None:
    added_now = head.snapshot_id in draft.snapshots.added_ids
    # a rollback happens now; a new snapshot became current when its writer made it
    at = head.timestamp_ms if added_now else draft.updated_ms
    draft.current_snapshot_id = head.snapshot_id
    draft.snapshot_log.append(LogEntry(at, head.snapshot_id))
    if added_now:
        draft.became_main.add(head.snapshot_id)


def _ref_document(ref: SnapshotRef, raw: wire.Json) -> Raw:
    known = wire.members(wire.dump(ref), "ref")
    sent = wire.members(raw, "set-snapshot-ref")
    # members that this engine does not know are kept
    extra = {name: each for name, each in sent.items() if name not in _REF_MEMBERS}
    return wire.dump(known | extra)


_REF_MEMBERS: Final = frozenset(
    {
        "action",
        "ref-name",
        "snapshot-id",
        "type",
        "min-snapshots-to-keep",
        "max-snapshot-age-ms",
        "max-ref-age-ms",
    },
)


def remove_snapshot_ref(draft: TableDraft, update: RemoveSnapshotRef) -> None:
    """Remove a branch or tag, if it exists; without `main` the table has no current snapshot."""
    if update.ref_name == MAIN:
        draft.current_snapshot_id = None
    if draft.refs.remove(update.ref_name):
        draft.changed = True
