"""A tiny model of a table's snapshots, refs and snapshot log, on plain dicts and written from the spec alone."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

Document = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """Snapshot times by id, refs, and the log as (time, id); `version` is the format's."""

    version: int
    snapshots: dict[int, int] = field(default_factory=dict)
    refs: dict[str, Document] = field(default_factory=dict)
    log: tuple[tuple[int, int], ...] = ()
    current: int | None = None
    sequence: int = 0

    @classmethod
    def of(cls, document: Document) -> Self:
        """What a document says."""
        current = document["current-snapshot-id"]
        return cls(
            document["format-version"],
            {each["snapshot-id"]: each["timestamp-ms"] for each in document["snapshots"]},
            document["refs"],
            tuple((each["timestamp-ms"], each["snapshot-id"]) for each in document["snapshot-log"]),
            None if current in {None, -1} else current,
            document.get("last-sequence-number", 0),
        )

    def after(self, updates: list[Document], *, now_ms: int) -> Self:
        """The model after a commit that was accepted."""
        model = replace(self, snapshots=dict(self.snapshots), refs=dict(self.refs))
        added: set[int] = set()
        passing: set[int | None] = set()
        for each in updates:
            match each["action"]:
                case "upgrade-format-version":
                    model = replace(model, version=each["format-version"])
                case "add-snapshot":
                    snapshot = each["snapshot"]
                    model.snapshots[snapshot["snapshot-id"]] = snapshot["timestamp-ms"]
                    added.add(snapshot["snapshot-id"])
                    model = replace(model, sequence=snapshot.get("sequence-number", model.sequence))
                case "set-snapshot-ref":
                    model = model._set_ref(each, now_ms, added)
                    passing |= {each["snapshot-id"]} & added if each["ref-name"] == "main" else set()
                case "remove-snapshot-ref":
                    model = model._remove_ref(each["ref-name"])
                case "remove-snapshots":
                    for snapshot_id in each["snapshot-ids"]:
                        model = model._remove_snapshot(snapshot_id)
        return model._without(passing - {model.current}, self)

    def _set_ref(self, update: Document, now_ms: int, added: set[int]) -> Self:
        name, snapshot_id = update["ref-name"], update["snapshot-id"]
        ref = {key: each for key, each in update.items() if key not in {"action", "ref-name"}}
        if self.refs.get(name) == ref:
            return self
        self.refs[name] = ref
        if name != "main":
            return self
        at = self.snapshots[snapshot_id] if snapshot_id in added else now_ms
        return replace(self, current=snapshot_id, log=(*self.log, (at, snapshot_id)))

    def _remove_ref(self, name: str) -> Self:
        self.refs.pop(name, None)
        return replace(self, current=None) if name == "main" else self

    def _remove_snapshot(self, snapshot_id: int) -> Self:
        if self.snapshots.pop(snapshot_id, None) is None:
            return self
        dangling = [name for name, each in self.refs.items() if each["snapshot-id"] == snapshot_id]
        model = self
        for name in dangling:
            model = model._remove_ref(name)
        return model

    def _without(self, passing: set[int | None], before: Self) -> Self:
        """The log without what was current only in between, and without all before a gap."""
        gone = before.snapshots.keys() - self.snapshots.keys()
        last_gap = max((at for at, (_, each) in enumerate(self.log) if each not in self.snapshots), default=-1)
        kept = self.log[last_gap + 1 :] if gone or last_gap >= 0 else self.log
        return replace(self, log=tuple(each for each in kept if each[1] not in passing))
