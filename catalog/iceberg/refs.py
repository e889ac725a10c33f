"""The branches and tags of a table while a commit changes them: by name, and by the snapshot that they point to."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.wire import Members, Wire


class SnapshotRef(Wire, omit_defaults=True):
    """A branch or a tag with its retention; ages are in milliseconds."""

    snapshot_id: wire.Int64
    type: str
    min_snapshots_to_keep: wire.Int32 | None = None
    max_snapshot_age_ms: wire.Int64 | None = None
    max_ref_age_ms: wire.Int64 | None = None


_REF = wire.decoder(SnapshotRef)
_MEMBERS = msgspec.json.Decoder(Members)


class Refs:
    """The member `refs` of the metadata; a ref is decoded when it is needed."""

    def __init__(self, stored: Raw | None) -> None:
        self._raws: Members = {} if stored is None else _MEMBERS.decode(stored)
        self._names: defaultdict[int, set[str]] | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._raws)

    def find(self, name: str) -> SnapshotRef | None:
        """The branch or tag with this name, or None."""
        raw = self._raws.get(name)
        return None if raw is None else _REF.decode(raw)

    def names_of(self, snapshot_ids: Iterable[int]) -> list[str]:
        """The branches and tags that point to one of these snapshots."""
        if self._names is None:
            self._names = defaultdict(set)
            for name, raw in self._raws.items():
                self._names[_REF.decode(raw).snapshot_id].add(name)
        return [name for each in snapshot_ids for name in self._names.get(each, ())]

    def put(self, name: str, snapshot_id: int, raw: Raw) -> None:
        self._forget(name)
        self._raws[name] = raw
        if self._names is not None:
            self._names[snapshot_id].add(name)

    def remove(self, name: str) -> bool:
        """Returns whether it existed."""
        self._forget(name)
        return self._raws.pop(name, None) is not None

    def encode(self) -> Raw:
        return wire.dump(self._raws)

    def _forget(self, name: str) -> None:
        if self._names is not None and (ref := self.find(name)) is not None:
            self._names[ref.snapshot_id].discard(name)
