"""Writes one table's part of a micro-batch: creates or alters the table, then one snapshot for each target."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from pipeline.jobs import policies
from pipeline.jobs.lake import Identifier, Lake
from pipeline.jobs.metadata import KIND, Metadata
from pipeline.jobs.policies import Kind, Mode
from pipeline.jobs.table_locks import TableLocks
from pipeline.transforms.columns import CDC_COLUMNS, METADATA_COLUMN, METADATA_TYPE, Change, Column, needed
from pipeline.transforms.rows import (
    DELETED_COLUMNS,
    MISFITS,
    REJECTED_COLUMNS,
    changes,
    deleted,
    latest,
    rejected,
    typed,
)
from pipeline.transforms.shapes import Shape

ATTEMPTS = 3
KEPT = 2000
"""Tables whose metadata are kept from flush to flush."""
DAILY = "days(_cdc_timestamp)"
_OWN = tuple(Column(name, kind, required=True) for name, kind in CDC_COLUMNS.items())
_COLUMNS = {
    Kind.CHANGELOG: _OWN,
    Kind.MIRROR: tuple(column for column in _OWN if column.name != "_cdc_operation"),
    Kind.REJECTED: REJECTED_COLUMNS,
    Kind.DELETED: DELETED_COLUMNS,
}
_METADATA = Column(METADATA_COLUMN, METADATA_TYPE)

log = logging.getLogger("lakewarden.pipeline")


@dataclass(frozen=True, slots=True)
class Part:
    """A table's events of a micro-batch, which ends at `upto`."""

    table: Identifier
    events: DataFrame
    count: int
    fields: Mapping[str, Shape]
    has_metadata: bool
    upto: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a commit of the pipeline added, as its summary says."""

    table: Identifier
    snapshot_id: int
    files: int
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Write:
    """What one table gets of a part. `is_main`: the table that the events name, beside which rejected values are."""

    part: Part
    target: Identifier
    kind: Kind
    is_main: bool


@dataclass(frozen=True, slots=True)
class _Target:
    """A table that a part is written to, as it is now."""

    name: Identifier
    kind: Kind
    columns: tuple[Column, ...]


@dataclass(slots=True)
class Written:
    """What became of a write."""

    snapshots: list[Snapshot] = field(default_factory=list)
    rejected: int = 0


class TableWriter:
    """For one catalog and log. Keeps each table's metadata from write to write; any failure lets it look again."""

    def __init__(self, lake: Lake, *, log_id: UUID, default: Mode, rows_per_task: int, locks: TableLocks) -> None:
        self._lake = lake
        self._log_id = log_id
        self._default = default
        self._rows_per_task = rows_per_task
        self._locks = locks
        self._known: dict[Identifier, Metadata] = {}
        self._modes: dict[Identifier, Mode] = {}

    def forget(self) -> None:
        """Look at all tables again: another process, or we before a failure, may have changed them."""
        self._known.clear()
        self._modes.clear()

    def writes(self, part: Part) -> list[Write]:
        """The tables that the part goes to: one or two, which do not depend on each other."""
        if len(self._known) > KEPT:
            self.forget()
        targets = policies.targets(part.table, self._mode(part.table))
        return [Write(part, target, kind, is_main=number == 0) for number, (target, kind) in enumerate(targets)]

    def write(self, write: Write) -> Written:
        """A table that holds the part's positions already is left as it is."""
        done = Written()
        with self._locks.held(write.target):
            self._again(partial(self._target, write, done))
        return done

    def largest_mirror(self) -> int:
        """Rows of the largest mirror among the tables whose metadata are kept."""
        kept = [each for each in list(self._known.values()) if each.properties.get(KIND) == Kind.MIRROR]
        return max((each.rows(self._log_id) for each in kept), default=0)

    def added_files(self, snapshot: Snapshot) -> list[str]:
        """The paths of the data files that it added."""
        return self._lake.added_files(snapshot.table, snapshot.snapshot_id)

    def _again(self, attempt: Callable[[], None]) -> None:
        """What other engines did meanwhile is seen in the next attempt; an outage is left to who called us."""
        for left in reversed(range(ATTEMPTS)):
            try:
                return attempt()
            except (PySparkException, Py4JError) as error:
                self.forget()
                if not left:
                    raise
                log.debug("Attempted again: %s", error)
        return None

    def _target(self, write: Write, done: Written) -> None:
        part, target = write.part, write.target
        metadata, kind = self._ready(target, write.kind, part)
        columns = metadata.columns
        covered = metadata.covered(self._log_id)
        rows = self._typed(part, columns, after=covered.to if covered else 0)
        misfits: int | None = None
        if covered is None or covered.to < part.upto:
            self._locks.ensure_ours()
            misfits = self._commit(part, _Target(target, kind, columns), rows, done)
            done.snapshots += self._added(target)
        if write.is_main and misfits != 0:
            # of what is covered we no longer know whether something did not fit
            self._reject(part, columns, done)

    def _typed(self, part: Part, columns: Sequence[Column], *, after: int) -> DataFrame:
        events = part.events.where(f.col("position") > after) if after else part.events
        few = events.coalesce(-(-part.count // self._rows_per_task))
        return typed(few, tuple(columns), has_metadata=part.has_metadata)

    def _commit(self, part: Part, target: _Target, rows: DataFrame, done: Written) -> int:
        """Returns how many values did not fit."""
        observed = Observation()
        counted = rows.observe(observed, f.coalesce(f.sum(f.size(MISFITS)), f.lit(0)).alias("misfits"))
        if target.kind is Kind.MIRROR:
            # MERGE reads its source more than once
            newest = latest(counted, target.columns).persist()
            try:
                due = self._not_deleted(part, target.name, newest, done)
                self._lake.merge(target.name, due, [name for name in due.columns if name != "_cdc_operation"])
            finally:
                newest.unpersist()
        else:
            self._lake.append(target.name, changes(counted, target.columns))
        return int(observed.get["misfits"])

    def _not_deleted(self, part: Part, mirror: Identifier, newest: DataFrame, done: Written) -> DataFrame:
        """`newest` without changes of rows that a later change has deleted already.

        Deletes are remembered first, in a table of their own: after a crash in between, they are there, and count.
        """
        is_delete = f.col("_cdc_operation") == "DELETE"
        lowest_other = f.min(f.when(~is_delete, f.col("_cdc_sequence")))
        deletes, lowest = newest.agg(f.count_if(is_delete), lowest_other).collect()[0]
        target = policies.deleted(mirror)
        metadata = self._metadata(target)
        covered = metadata.covered(self._log_id) if metadata else None
        if deletes and (covered is None or covered.to < part.upto):
            with self._locks.held(target):
                if metadata is None:
                    self._lake.create(target, DELETED_COLUMNS, kind=Kind.DELETED, partitions="days(_cdc_written_at)")
                self._locks.ensure_ours()
                self._lake.append(target, deleted(newest))
            done.snapshots += self._added(target)
        if lowest is None or self._metadata(target) is None:
            return newest
        # sequences mostly grow: then the statistics of files say that none has a higher one, and nothing is read
        later = self._lake.table(target).where(f.col("_cdc_sequence") > lowest)
        if later.isEmpty():
            return newest
        named = later.select(f.col("_cdc_row_id").alias("_row"), f.col("_cdc_sequence").alias("_at"))
        is_late = (newest["_cdc_row_id"] == named["_row"]) & (newest["_cdc_sequence"] < named["_at"])
        return newest.join(named, is_late, "left_anti")

    def _reject(self, part: Part, columns: Sequence[Column], done: Written) -> None:
        target = policies.rejected(part.table)
        metadata = self._metadata(target)
        covered = metadata.covered(self._log_id) if metadata else None
        if covered and covered.to >= part.upto:
            return
        rows = rejected(self._typed(part, columns, after=covered.to if covered else 0)).persist()
        try:
            count = rows.count()
            if count:
                with self._locks.held(target):
                    if metadata is None:
                        self._lake.create(target, REJECTED_COLUMNS, kind=Kind.REJECTED)
                    self._locks.ensure_ours()
                    self._lake.append(target, rows)
                done.rejected += count
                done.snapshots += self._added(target)
        finally:
            rows.unpersist()

    def _ready(self, target: Identifier, kind: Kind, part: Part) -> tuple[Metadata, Kind]:
        """The table's metadata, once it has all columns that the part needs; and what its rows are.

        A table stays what it was made as: rows of the other kind would make it useless as either.
        """
        metadata = self._metadata(target)
        if metadata is not None:
            kind = Kind(metadata.properties.get(KIND, kind))
        else:
            partitions = DAILY if kind is Kind.CHANGELOG else ""
            made = [Column(change.path[0], change.type) for change in needed((), part.fields)]
            extra = [_METADATA] if part.has_metadata and kind is Kind.CHANGELOG else []
            self._lake.create(target, [*_COLUMNS[kind], *extra, *made], kind=kind, partitions=partitions)
            metadata = self._loaded(target)
        if missing := self._missing(metadata.columns, kind, part):
            self._lake.change(target, missing)
            metadata = self._loaded(target)
        return metadata, kind

    def _missing(self, columns: tuple[Column, ...], kind: Kind, part: Part) -> list[Change]:
        """Our own columns are optional in a table that others made: its rows have no values for them."""
        known = {column.name for column in columns}
        own = [*_COLUMNS[kind], *([_METADATA] if part.has_metadata and kind is Kind.CHANGELOG else [])]
        return [Change((each.name,), each.type) for each in own if each.name not in known] + needed(
            columns, part.fields
        )

    def _metadata(self, target: Identifier) -> Metadata | None:
        known = self._known.get(target)
        if known is None and (known := self._lake.metadata(target)) is not None:
            self._known[target] = known
        return known

    def _loaded(self, target: Identifier) -> Metadata:
        metadata = self._lake.metadata(target)
        if metadata is None:
            raise PySparkException(f"The table {'.'.join(target)} was dropped while the pipeline prepared it")
        self._known[target] = metadata
        return metadata

    def _added(self, target: Identifier) -> list[Snapshot]:
        covered = self._loaded(target).covered(self._log_id)
        if covered is None:
            return []
        summary = covered.summary
        return [
            Snapshot(
                table=target,
                snapshot_id=covered.snapshot_id,
                files=int(summary.get("added-data-files", 0)),
                bytes=int(summary.get("added-files-size", 0)),
                rows=int(summary.get("added-records", 0)),
            )
        ]

    def _mode(self, table: Identifier) -> Mode:
        if (known := self._modes.get(table)) is None:
            metadata = self._metadata(table)
            sources = [metadata.properties] if metadata else []
            sources += [self._lake.properties_of_namespace(table[:length]) for length in range(len(table) - 1, 0, -1)]
            known = self._modes[table] = policies.mode(sources, default=self._default)
        return known
