"""What a micro-batch has for each table, and what became of it; for `flush` and those that write."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from pipeline.jobs.lake import Identifier
from pipeline.jobs.metadata import Covered
from pipeline.jobs.policies import Kind
from pipeline.transforms.shapes import Shape


@dataclass(frozen=True, slots=True)
class Part:
    """A table's events of a micro-batch, which holds the positions behind `after` up to `upto`.

    `key` is the table's name in EVENT_SCHEMA; `bytes`: of the events as they were received, about.
    """

    key: str
    table: Identifier
    events: DataFrame
    count: int
    bytes: int
    fields: Mapping[str, Shape]
    has_metadata: bool
    after: int
    upto: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a commit of the pipeline added, as its summary says."""

    table: Identifier
    snapshot_id: int
    files: int
    bytes: int
    rows: int

    @classmethod
    def of(cls, table: Identifier, covered: Covered) -> "Snapshot":
        """The pipeline's newest snapshot of a table."""
        summary = covered.summary
        return cls(
            table=table,
            snapshot_id=covered.snapshot_id,
            files=int(summary.get("added-data-files", 0)),
            bytes=int(summary.get("added-files-size", 0)),
            rows=int(summary.get("added-records", 0)),
        )


@dataclass(frozen=True, slots=True)
class Write:
    """What one table gets of a part. `is_main`: the table that the events name, beside which rejected values are."""

    part: Part
    target: Identifier
    kind: Kind
    is_main: bool


@dataclass(slots=True)
class Written:
    """What became of a write."""

    snapshots: list[Snapshot] = field(default_factory=list)
    rejected: int = 0
