"""The snapshots of a table: adds and removes snapshots without parsing all of them."""

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.wire import Wire


class SnapshotHead(Wire):
    """The members of a stored snapshot that rules need."""

    snapshot_id: int
    timestamp_ms: int
    sequence_number: int = 0


_HEADS = msgspec.json.Decoder(list[SnapshotHead])
_LIST = msgspec.json.Decoder(list[Raw])


class Snapshots:
    """The member `snapshots` of the metadata while a commit changes it."""

    def __init__(self, stored: Raw | None) -> None:
        self._stored = bytes(stored) if stored is not None else b"[]"
        self._added: list[Raw] = []
        self._split: dict[int, Raw] | None = None
        """All snapshots, once one of them was removed: until then the stored ones are copied together."""
        self.heads = {each.snapshot_id: each for each in _HEADS.decode(self._stored)}
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
        if not self._added:
            return Raw(self._stored)
        added = wire.compact(self._added)
        if self._stored.lstrip(b"[ \t\r\n") == b"]":
            return Raw(added)
        return Raw(self._stored[: self._stored.rindex(b"]")] + b"," + added[1:])
