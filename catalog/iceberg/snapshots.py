"""The snapshots of a table: adds and removes snapshots without parsing all of them."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.entries import extended
from catalog.iceberg.wire import Wire


class SnapshotHead(Wire, gc=False):
    """The members of a stored snapshot that rules need."""

    snapshot_id: int
    timestamp_ms: int
    sequence_number: int = 0


_HEADS = msgspec.json.Decoder(list[SnapshotHead])
_LIST = msgspec.json.Decoder(list[Raw])


class Snapshots:
    """The member `snapshots` of the metadata while a commit changes it; `heads` are its snapshots, if known."""

    def __init__(self, stored: Raw | None, heads: Mapping[int, SnapshotHead] | None = None) -> None:
        self._stored = Raw(b"[]") if stored is None else stored
        self._added: list[Raw] = []
        self._split: dict[int, Raw] | None = None
        """All snapshots, once one of them was removed: until then the stored ones are copied together."""
        self.heads = {each.snapshot_id: each for each in _HEADS.decode(self._stored)} if heads is None else dict(heads)
        self.added_ids: set[int] = set()

    @property
    def has_removed(self) -> bool:
        return self._split is not None

    def add(self, head: SnapshotHead, raw: Raw) -> None:
        """Append a snapshot as the client wrote it; its id must be new."""
        if self._split is None:
            self._added.append(raw)
        else:
            self._split[head.snapshot_id] = raw
        self.added_ids.add(head.snapshot_id)
        self.heads[head.snapshot_id] = head

    def remove(self, snapshot_ids: set[int]) -> set[int]:
        """Remove these snapshots; returns those that existed."""
        gone = {each for each in snapshot_ids if each in self.heads}
        if not gone:
            return gone
        if self._split is None:
            self._split = dict(zip(self.heads, _LIST.decode(self.encode()), strict=True))
        for each in gone:
            del self.heads[each], self._split[each]
        return gone

    def retain(self, snapshot_ids: set[int]) -> None:
        """Keep only these snapshots."""
        self.remove(self.heads.keys() - snapshot_ids)

    def encode(self) -> Raw:
        """The JSON of the member; stored snapshots are copied unchanged."""
        if self._split is not None:
            return wire.dump(list(self._split.values()))
        return extended(self._stored, self._added)
