"""Builds the new metadata from a draft: checks rules about the whole, updates the logs, writes everything back."""

from itertools import pairwise
from typing import Final

from msgspec import Raw

from catalog.iceberg import partition_specs, sort_orders, wire
from catalog.iceberg.properties import whole_number
from catalog.iceberg.table_draft import NO_SNAPSHOT, ORDERS, ROW_LINEAGE_SINCE, SCHEMAS, SPECS, TableDraft
from catalog.iceberg.wire import Members
from lakewarden.errors import InvalidArgument, ValidationFailed

PREVIOUS_VERSIONS_MAX: Final = "write.metadata.previous-versions-max"
_PREVIOUS_VERSIONS_DEFAULT: Final = 100
_CLOCK_SKEW_MS: Final = 60_000


def build(draft: TableDraft, *, base_location: str | None) -> Members:
    """The members of the new metadata. `base_location` is the metadata file that it replaces; None for a new table.

    Raises InvalidArgument or ValidationFailed if the result breaks a rule of the format.
    """
    if draft.is_new:
        _check_complete(draft)
    if draft.layout_changed:
        _check_layout(draft)
    _correct_snapshot_log(draft)
    _check_time(draft)
    if base_location is not None:
        _log_previous_file(draft, base_location)
    draft.put("last-updated-ms", draft.updated_ms)
    _fit_format_version(draft)
    draft.write_back()
    return draft.members


def _check_complete(draft: TableDraft) -> None:
    if not draft.text("location"):
        raise ValidationFailed("Cannot create table without a location: add a set-location update")
    for entries, member, name in (
        (draft.schemas, SCHEMAS, "schema"),
        (draft.specs, SPECS, "spec"),
        (draft.orders, ORDERS, "sort-order"),
    ):
        if not entries:
            raise ValidationFailed(f"Cannot create table without {member}: add an add-{name} update")


def _check_layout(draft: TableDraft) -> None:
    draft.current_schema_id()
    spec = draft.specs.get(draft.long("default-spec-id"))
    if spec is None:
        spec_id = draft.long("default-spec-id")
        raise InvalidArgument(f"Cannot set default partition spec to unknown spec: {spec_id}")
    order = draft.orders.get(draft.long("default-sort-order-id"))
    if order is None:
        order_id = draft.long("default-sort-order-id")
        raise InvalidArgument(f"Cannot set default sort order to unknown sort order: {order_id}")
    if spec.fields or order.fields:
        schema = draft.current_schema()
        partition_specs.check_sources(spec, schema)
        sort_orders.check_sources(order, schema)


def _correct_snapshot_log(draft: TableDraft) -> None:
    """Remove snapshots from the log that were current only within this commit, and all entries before a removed
    snapshot.

    After a gap in the log, time travel would treat the earlier entry as current during the gap, which is wrong.
    """
    current = draft.current_snapshot_id
    # readers could never have seen them as the current snapshot
    passing = draft.became_main - {current}
    opened = "snapshots" in draft.__dict__
    has_removed = opened and draft.snapshots.has_removed
    if not passing and not has_removed:
        return
    entries, kept = draft.snapshot_log.entries(), list[int]()
    for position, entry in enumerate(entries):
        if entry.snapshot_id not in draft.snapshots.heads:
            if has_removed:
                kept.clear()
        elif entry.snapshot_id not in passing:
            kept.append(position)
    draft.snapshot_log.keep(kept)
    if current is not None and kept and entries[kept[-1]].snapshot_id != current:
        raise ValidationFailed("Cannot set invalid snapshot log: latest entry is not the current snapshot")


def _check_time(draft: TableDraft) -> None:
    # a log that no update has opened is unchanged, and was checked when it was written
    if "snapshot_log" in draft.__dict__:
        check_log_times([each.timestamp_ms for each in draft.snapshot_log.entries()], draft.updated_ms)


def check_log_times(times: list[int], updated_ms: int) -> None:
    """Raises InvalidArgument unless the log is sorted and not later than the document, with a minute of clock skew."""
    for earlier, later in pairwise(times):
        if later - earlier < -_CLOCK_SKEW_MS:
            raise InvalidArgument(f"Expected sorted snapshot log entries: {later} comes after {earlier}")
    if times and updated_ms - times[-1] < -_CLOCK_SKEW_MS:
        raise InvalidArgument(
            f"Invalid update timestamp {updated_ms}: before last snapshot log entry at {times[-1]}",
        )


def _log_previous_file(draft: TableDraft, location: str) -> None:
    text = draft.properties.get(PREVIOUS_VERSIONS_MAX, str(_PREVIOUS_VERSIONS_DEFAULT))
    most = whole_number(text)
    if most is None:
        raise InvalidArgument(f"Invalid table property {PREVIOUS_VERSIONS_MAX}: {text} is not a number")
    log = draft.entries("metadata-log")
    log.append(wire.dump({"timestamp-ms": draft.long("last-updated-ms"), "metadata-file": location}))
    # at least one entry stays, as in Iceberg's Java library
    del log[: -max(1, most)]


def _fit_format_version(draft: TableDraft) -> None:
    """Write the members that depend on the format version: v1 repeats the current schema and spec for old readers."""
    version = draft.format_version
    if draft.current_snapshot_id is None:
        draft.put("current-snapshot-id", None if version >= ROW_LINEAGE_SINCE else NO_SNAPSHOT)
    if version == 1:
        draft.members["schema"] = draft.schemas.raw(draft.long("current-schema-id"))
        spec = draft.specs.raw(draft.long("default-spec-id"))
        draft.members["partition-spec"] = wire.members(spec, "stored partition spec")["fields"]
        return
    draft.members.pop("schema", None)
    draft.members.pop("partition-spec", None)
    draft.members.setdefault("last-sequence-number", Raw(b"0"))
    if version >= ROW_LINEAGE_SINCE:
        draft.members.setdefault("next-row-id", Raw(b"0"))
