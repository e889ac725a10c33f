"""Reads the updates of a table commit and applies them to a draft in order (spec schema TableUpdate)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from catalog.iceberg import (
    partition_and_sort_updates,
    ref_updates,
    schema_updates,
    snapshot_updates,
    statistics_updates,
    table_updates,
    wire,
)
from catalog.iceberg.table_draft import TableDraft
from catalog.iceberg.wire import Json, Wire
from lakewarden.errors import BadRequest

U = TypeVar("U")
Apply = Callable[[TableDraft, Json], None]


class Action(Wire):
    action: str


_ACTION = wire.decoder(Action)
_FORMAT_VERSION = wire.decoder(table_updates.UpgradeFormatVersion)
_SET_REF = wire.decoder(ref_updates.SetSnapshotRef)


def _typed(shape: type[U], apply: Callable[[TableDraft, U], None]) -> Apply:
    decoder = wire.decoder(shape)

    def parse_and_apply(draft: TableDraft, raw: Json) -> None:
        apply(draft, wire.parse(decoder, raw, "update"))

    return parse_and_apply


def _set_snapshot_ref(draft: TableDraft, raw: Json) -> None:
    # gets the raw update as well, because unknown members are stored in the ref
    ref_updates.set_snapshot_ref(draft, wire.parse(_SET_REF, raw, "update"), raw)


APPLY: Final[dict[str, Apply]] = {
    "assign-uuid": _typed(table_updates.AssignUuid, table_updates.assign_uuid),
    "upgrade-format-version": _typed(table_updates.UpgradeFormatVersion, table_updates.upgrade_format_version),
    "add-schema": _typed(schema_updates.AddSchema, schema_updates.add_schema),
    "set-current-schema": _typed(schema_updates.SetCurrentSchema, schema_updates.set_current_schema),
    "remove-schemas": _typed(schema_updates.RemoveSchemas, schema_updates.remove_schemas),
    "add-spec": _typed(partition_and_sort_updates.AddSpec, partition_and_sort_updates.add_spec),
    "set-default-spec": _typed(partition_and_sort_updates.SetDefaultSpec, partition_and_sort_updates.set_default_spec),
    "remove-partition-specs": _typed(
        partition_and_sort_updates.RemovePartitionSpecs, partition_and_sort_updates.remove_partition_specs
    ),
    "add-sort-order": _typed(partition_and_sort_updates.AddSortOrder, partition_and_sort_updates.add_sort_order),
    "set-default-sort-order": _typed(
        partition_and_sort_updates.SetDefaultSortOrder, partition_and_sort_updates.set_default_sort_order
    ),
    "add-snapshot": _typed(snapshot_updates.AddSnapshot, snapshot_updates.add_snapshot),
    "set-snapshot-ref": _set_snapshot_ref,
    "remove-snapshots": _typed(snapshot_updates.RemoveSnapshots, snapshot_updates.remove_snapshots),
    "remove-snapshot-ref": _typed(ref_updates.RemoveSnapshotRef, ref_updates.remove_snapshot_ref),
    "set-location": _typed(table_updates.SetLocation, table_updates.set_location),
    "set-properties": _typed(table_updates.SetProperties, table_updates.set_properties),
    "remove-properties": _typed(table_updates.RemoveProperties, table_updates.remove_properties),
    "set-statistics": _typed(statistics_updates.SetStatistics, statistics_updates.set_statistics),
    "remove-statistics": _typed(statistics_updates.RemoveStatistics, statistics_updates.remove_statistics),
    "set-partition-statistics": _typed(
        statistics_updates.SetPartitionStatistics, statistics_updates.set_partition_statistics
    ),
    "remove-partition-statistics": _typed(
        statistics_updates.RemovePartitionStatistics, statistics_updates.remove_partition_statistics
    ),
    "add-encryption-key": _typed(table_updates.AddEncryptionKey, table_updates.add_encryption_key),
    "remove-encryption-key": _typed(table_updates.RemoveEncryptionKey, table_updates.remove_encryption_key),
}


def named(updates: Sequence[Json], known: "Sequence[str] | dict[str, Apply]") -> list[tuple[str, Json]]:
    """Pair each update with its action. Raises BadRequest, which names the first unknown action and its position."""
    found = []
    for position, raw in enumerate(updates):
        what = f"updates[{position}]"
        wire.check_text(raw, what)
        action = wire.parse(_ACTION, raw, what).action.lower()
        if action not in known:
            raise BadRequest(f"{what}: unknown action: {action}; known are {', '.join(sorted(known))}")
        found.append((action, raw))
    return found


def apply_all(draft: TableDraft, updates: Sequence[Json]) -> None:
    """Apply updates in order. Raises BadRequest, which names the update and the invalid member.

    InvalidArgument and ValidationFailed name the rule that an update breaks, StaleUpdate one that came too late.
    """
    for position, (action, raw) in enumerate(named(updates, APPLY)):
        try:
            APPLY[action](draft, raw)
        except BadRequest as error:
            if type(error) is not BadRequest:
                # for a broken rule, the message is that of Iceberg's Java library
                raise
            raise at_update(error, position, action) from error


def at_update(error: BadRequest, position: int, action: str) -> BadRequest:
    """A BadRequest for a malformed update, with its position in the list."""
    return BadRequest(f"updates[{position}] ({action}): {error.message.removeprefix('update: ')}")


def first_format_version(updates: Sequence[Json]) -> int | None:
    """The version in the first upgrade-format-version of a creation, or None."""
    for position, (action, raw) in enumerate(named(updates, APPLY)):
        if action == "upgrade-format-version":
            return wire.parse(_FORMAT_VERSION, raw, f"updates[{position}] ({action})").format_version
    return None
