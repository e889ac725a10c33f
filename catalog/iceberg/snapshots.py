"""The snapshots of a table: which there are, appended to and removed from without parsing them all."""

from collections.abc import Callable

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.wire import Wire


class SnapshotHead(Wire):
    """What the rules need to know of a snapshot that is stored."""

    snapshot_id: int
    timestamp_ms: int
    sequence_number: int = 0


_HEADS = msgspec.json.Decoder(list[SnapshotHead])
_LIST = msgspec.json.Decoder(list[Raw])


class Snapshots:
    """The `snapshots` member of a document while a commit changes it."""

    def __init__(self, stored: Raw | None) -> None:
        self._stored = bytes(stored) if stored is not None else b"[]"
        self._added: list[Raw] = []
        self.heads = {each.snapshot_id: each for each in _HEADS.decode(self._stored)}
        self.added_ids: set[int] = set()
        self.has_removed = False

    def add(self, head: SnapshotHead, raw: Raw) -> None:
        """Append a snapshot as it was written; the caller has checked that its id is new."""
        self._added.append(raw)
        self.added_ids.add(head.snapshot_id)
        self.heads[head.snapshot_id] = head

    def remove(self, snapshot_ids: set[int]) -> set[int]:
        """Take these snapshots out and return which of them there were."""
        gone = snapshot_ids & self.heads.keys()
        if gone:
            self.has_removed = True
            self._keep(lambda snapshot_id: snapshot_id not in gone)
        return gone

    def retain(self, snapshot_ids: set[int]) -> None:
        """Keep only these snapshots."""
        self._keep(lambda snapshot_id: snapshot_id in snapshot_ids)

    def encode(self) -> Raw:
        """The member as it is to be written; what was stored is copied byte by byte."""
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
