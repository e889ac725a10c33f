"""Writes one table's part of a micro-batch: creates or alters the table, then one snapshot for each target."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from pipeline.jobs import policies
from pipeline.jobs.lake import Identifier, Lake
from pipeline.jobs.parts import Part, Snapshot, Write, Written
from pipeline.jobs.policies import Kind, Mode
from pipeline.jobs.table_locks import TableLocks
from pipeline.jobs.tables import Tables
from pipeline.transforms.columns import Column
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


@dataclass(frozen=True, slots=True)
class _Target:
    """A table that a part is written to, as it is now."""

    name: Identifier
    kind: Kind
    columns: tuple[Column, ...]


class TableWriter:
    """For one catalog and log."""

    def __init__(self, lake: Lake, *, log_id: UUID, default: Mode, rows_per_task: int, locks: TableLocks) -> None:
        self.lake = lake
        self.locks = locks
        self.log_id = log_id
        self.tables = Tables(lake, log_id=log_id, default=default)
        self._rows_per_task = rows_per_task

    def forget(self) -> None:
        """Look at all tables again: another process, or we before a failure, may have changed them."""
        self.tables.forget()

    def writes(self, part: Part) -> list[Write]:
        """The tables that the part goes to: one or two, which do not depend on each other."""
        targets = policies.targets(part.table, self.tables.mode(part.table))
        return [Write(part, target, kind, is_main=number == 0) for number, (target, kind) in enumerate(targets)]

    def write(self, write: Write) -> Written:
        """A table that holds the part's positions already is left as it is."""
        done = Written()
        with self.locks.held(write.target):
            self.tables.again(partial(self._target, write, done))
        return done

    def added_files(self, snapshot: Snapshot) -> list[str]:
        """The paths of the data files that it added."""
        return self.lake.added_files(snapshot.table, snapshot.snapshot_id)

    def reject(self, part: Part, columns: Sequence[Column], done: Written) -> None:
        """Write what does not fit the columns beside the table, unless it is there."""
        target = policies.rejected(part.table)
        metadata = self.tables.metadata(target)
        covered = metadata.covered(self.log_id) if metadata else None
        if covered and covered.to >= part.upto:
            return
        rows = rejected(self._typed(part, columns, after=covered.to if covered else 0)).persist()
        try:
            count = rows.count()
            if count:
                with self.locks.held(target):
                    if metadata is None:
                        self.lake.create(target, REJECTED_COLUMNS, kind=Kind.REJECTED)
                    self.locks.ensure_ours()
                    self.lake.append(target, rows)
                done.rejected += count
                done.snapshots += self._added(target)
        finally:
            rows.unpersist()

    def _target(self, write: Write, done: Written) -> None:
        part, target = write.part, write.target
        metadata, kind = self.tables.ready(target, write.kind, part)
        columns = metadata.columns
        covered = metadata.covered(self.log_id)
        rows = self._typed(part, columns, after=covered.to if covered else 0)
        misfits: int | None = None
        if covered is None or covered.to < part.upto:
            self.locks.ensure_ours()
            misfits = self._commit(part, _Target(target, kind, columns), rows, done)
            done.snapshots += self._added(target)
        if write.is_main and (misfits != 0 or (covered is not None and covered.to > part.after)):
            # of what is covered we no longer know whether something did not fit
            self.reject(part, columns, done)

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
                self.lake.merge(target.name, due, [name for name in due.columns if name != "_cdc_operation"])
            finally:
                newest.unpersist()
        else:
            self.lake.append(target.name, changes(counted, target.columns))
        return int(observed.get["misfits"])

    def _not_deleted(self, part: Part, mirror: Identifier, newest: DataFrame, done: Written) -> DataFrame:
        """`newest` without changes of rows that a later change has deleted already.

        Deletes are remembered first, in a table of their own: after a crash in between, they are there, and count.
        """
        is_delete = f.col("_cdc_operation") == "DELETE"
        lowest_other = f.min(f.when(~is_delete, f.col("_cdc_sequence")))
        deletes, lowest = newest.agg(f.count_if(is_delete), lowest_other).collect()[0]
        target = policies.deleted(mirror)
        metadata = self.tables.metadata(target)
        covered = metadata.covered(self.log_id) if metadata else None
        if deletes and (covered is None or covered.to < part.upto):
            with self.locks.held(target):
                if metadata is None:
                    self.lake.create(target, DELETED_COLUMNS, kind=Kind.DELETED, partitions="days(_cdc_written_at)")
                self.locks.ensure_ours()
                self.lake.append(target, deleted(newest))
            done.snapshots += self._added(target)
        if lowest is None or self.tables.metadata(target) is None:
            return newest
        # sequences mostly grow: then the statistics of files say that none has a higher one, and nothing is read
        later = self.lake.table(target).where(f.col("_cdc_sequence") > lowest)
        if later.isEmpty():
            return newest
        named = later.select(f.col("_cdc_row_id").alias("_row"), f.col("_cdc_sequence").alias("_at"))
        is_late = (newest["_cdc_row_id"] == named["_row"]) & (newest["_cdc_sequence"] < named["_at"])
        return newest.join(named, is_late, "left_anti")

    def _added(self, target: Identifier) -> list[Snapshot]:
        covered = self.tables.loaded(target).covered(self.log_id)
        return [] if covered is None else [Snapshot.of(target, covered)]
