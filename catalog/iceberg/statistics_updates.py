"""Updates of statistics files and partition statistics files; a snapshot has at most one of each."""

from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.table_draft import TableDraft
from catalog.iceberg.wire import Int32, Int64, Wire

STATISTICS: Final = "statistics"
PARTITION_STATISTICS: Final = "partition-statistics"


class BlobMetadata(Wire):
    type: str
    snapshot_id: Int64
    sequence_number: Int64
    fields: list[Int32]
    properties: dict[str, str] | None = None


class StatisticsFile(Wire):
    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64
    file_footer_size_in_bytes: Int64
    blob_metadata: list[BlobMetadata]


class PartitionStatisticsFile(Wire):
    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64


class SetStatistics(Wire):
    statistics: Raw


class RemoveStatistics(Wire):
    snapshot_id: Int64


class SetPartitionStatistics(Wire):
    partition_statistics: Raw


class RemovePartitionStatistics(Wire):
    snapshot_id: Int64


class _OfSnapshot(Wire):
    snapshot_id: int


_STATISTICS = wire.decoder(StatisticsFile)
_PARTITION_STATISTICS = wire.decoder(PartitionStatisticsFile)
_OF_SNAPSHOT = msgspec.json.Decoder(_OfSnapshot)


def set_statistics(draft: TableDraft, update: SetStatistics) -> None:
    """Set a snapshot's statistics file; it replaces an earlier one."""
    found = wire.parse(_STATISTICS, update.statistics, STATISTICS)
    _set(draft, STATISTICS, found.snapshot_id, update.statistics)


def set_partition_statistics(draft: TableDraft, update: SetPartitionStatistics) -> None:
    """Set a snapshot's partition statistics file; it replaces an earlier one."""
    found = wire.parse(_PARTITION_STATISTICS, update.partition_statistics, PARTITION_STATISTICS)
    _set(draft, PARTITION_STATISTICS, found.snapshot_id, update.partition_statistics)


def remove_statistics(draft: TableDraft, update: RemoveStatistics) -> None:
    """Remove a snapshot's statistics file, if it has one."""
    _forget(draft, STATISTICS, {update.snapshot_id})


def remove_partition_statistics(draft: TableDraft, update: RemovePartitionStatistics) -> None:
    """Remove a snapshot's partition statistics file, if it has one."""
    _forget(draft, PARTITION_STATISTICS, {update.snapshot_id})


def forget_statistics(draft: TableDraft, snapshot_ids: Collection[int]) -> None:
    """Remove both types of statistics files of removed snapshots."""
    _forget(draft, STATISTICS, snapshot_ids)
    _forget(draft, PARTITION_STATISTICS, snapshot_ids)


def _set(draft: TableDraft, member: str, snapshot_id: int, raw: Raw) -> None:
    entries = draft.keyed(member, _snapshot_id)
    # a snapshot has at most one file of each type
    entries.remove({snapshot_id})
    entries.append(snapshot_id, wire.dump(wire.members(raw, member)))
    draft.changed = True


def _forget(draft: TableDraft, member: str, snapshot_ids: Collection[int]) -> None:
    if draft.keyed(member, _snapshot_id).remove(snapshot_ids):
        draft.changed = True


def _snapshot_id(raw: Raw) -> int:
    return _OF_SNAPSHOT.decode(raw).snapshot_id
