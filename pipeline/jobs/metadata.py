"""What the pipeline reads in a table's metadata (Iceberg's table metadata JSON): columns, and positions of the log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pipeline.transforms.columns import Column

LOG_ID = "lakewarden.ingest.log-id"
FROM_POSITION = "lakewarden.ingest.from-position"
TO_POSITION = "lakewarden.ingest.to-position"
"""In the summary of each snapshot that the pipeline commits: which positions of which log it holds."""
KIND = "lakewarden.cdc.kind"
"""A property of tables that the pipeline made: what their rows are, `changelog`, `mirror` or `rejected`."""

_SHAPE = ("table-uuid", "format-version", "partition-spec", "sort-order", "properties")


@dataclass(frozen=True, slots=True)
class Covered:
    """The pipeline's newest snapshot in a table's history; `to` is the last position that it holds."""

    to: int
    snapshot_id: int
    summary: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a table, in Iceberg's JSON, or the part of it that is needed here."""

    content: Mapping[str, Any]

    @property
    def schema(self) -> Mapping[str, Any]:
        """The current one."""
        current = self.content["current-schema-id"]
        found: Mapping[str, Any] = next(each for each in self.content["schemas"] if each["schema-id"] == current)
        return found

    @property
    def columns(self) -> tuple[Column, ...]:
        return Column.parse_all(self.schema)

    @property
    def properties(self) -> Mapping[str, str]:
        return dict(self.content.get("properties") or {})

    def is_as(self, other: "Metadata", log: UUID) -> bool:
        """Whether files that were made for the other are right for this one, too: it is the same table, as it was then,
        with the same positions of the log.
        """
        here, there = self.covered(log), other.covered(log)
        same = all(self.content.get(name) == other.content.get(name) for name in _SHAPE)
        return same and self.schema == other.schema and (here and here.to) == (there and there.to)

    def covered(self, log: UUID) -> Covered | None:
        """The newest snapshot of this log in the current history.

        A snapshot that was rolled back does not count, and none is written after one that holds later positions.
        """
        for snapshot in self._history():
            summary = snapshot.get("summary", {})
            if summary.get(LOG_ID) == str(log) and TO_POSITION in summary:
                return Covered(int(summary[TO_POSITION]), int(snapshot["snapshot-id"]), summary)
        return None

    def rows(self, log: UUID) -> int:
        """How many it had after the newest snapshot of this log; deleted ones that are still in files count, too."""
        covered = self.covered(log)
        return int(covered.summary.get("total-records", 0)) if covered else 0

    def _history(self) -> Iterator[Mapping[str, Any]]:
        """The current snapshot and its ancestors, the newest first."""
        known = {each["snapshot-id"]: each for each in self.content.get("snapshots", ())}
        identifier = self.content.get("current-snapshot-id")
        while (snapshot := known.pop(identifier, None)) is not None:
            yield snapshot
            identifier = snapshot.get("parent-snapshot-id")
