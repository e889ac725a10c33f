"""The member `snapshot-log` of the metadata while a commit changes it: which snapshot was current from when on."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.entries import extended
from catalog.iceberg.wire import Wire


class LogEntry(Wire, gc=False):
    timestamp_ms: int
    snapshot_id: int


_ENTRIES = msgspec.json.Decoder(list[LogEntry])
_LIST = msgspec.json.Decoder(list[Raw])


class SnapshotLog:
    """Oldest first."""

    def __init__(self, stored: Raw | None) -> None:
        self._stored = Raw(b"[]") if stored is None else stored
        self._added: list[LogEntry] = []

    def append(self, entry: LogEntry) -> None:
        self._added.append(entry)

    def entries(self) -> list[LogEntry]:
        return [*_ENTRIES.decode(self._stored), *self._added]

    def keep(self, positions: Sequence[int]) -> None:
        """Remove all other entries; those that stay are unchanged."""
        raws = _LIST.decode(self.encode())
        self._stored, self._added = wire.dump([raws[each] for each in positions]), []

    def encode(self) -> Raw:
        return extended(self._stored, self._added)
