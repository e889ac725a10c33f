"""The snapshots of a table: adds and removes snapshots without parsing all of them."""

from collections.abc import Callable

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
        self.heads = {each.snapshot_id: each for each in _HEADS.decode(self._stored)}
        self.added_ids: set[int] = set()
        self.has_removed = False

    def add(self, head: SnapshotHead, raw: Raw) -> None:
        """Append a snapshot as the client wrote it; its id must be new."""
        self._added.append(raw)
        self.added_ids.add(head.snapshot_id)
        self.heads[head.snapshot_id] = head

    def remove(self, snapshot_ids: set[int]) -> set[int]:
        """Remove these snapshots; returns those that existed."""
        gone = snapshot_ids & self.heads.keys()
        if gone:
            self.has_removed = True
            self._keep(lambda snapshot_id: snapshot_id not in gone)
        return gone

    def retain(self, snapshot_ids: set[int]) -> None:
        """Keep only these snapshots."""
        self._keep(lambda snapshot_id: snapshot_id in snapshot_ids)

    def encode(self) -> Raw:
        """The JSON of the member; stored snapshots are copied unchanged."""
        if not self._added:
            return Raw(self._stored)
        added = wire.compact(self._added)
        if self._stored.lstrip(b"[ \t\r\n") == b"]":
            return Raw(added)
        return Raw(self._stored[: self._stored.rindex(b"]")] + b"," + added[1:])

    def _keep(self, wanted: Callable[[int], bool]) -> None:
        raws = _LIST.decode(bytes(self.encode()))
        kept = [(key, raw) for key, raw in zip(self.heads, raws, strict=True) if wanted(key)]
        self._stored, self._added = wire.compact([raw for _, raw in kept]), []
        self.heads = {key: self.heads[key] for key, _ in kept}
