"""A micro-batch of one warehouse's log: all its tables, then the flushed position."""

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession

from pipeline.jobs.metadata import FROM_POSITION, LOG_ID, TO_POSITION
from pipeline.jobs.parts import Part, Snapshot, Write, Written
from pipeline.jobs.plans import Plans
from pipeline.jobs.small_tables import SmallTables, grouped
from pipeline.jobs.write import TableWriter
from pipeline.transforms.events import events_of, summaries_of, tables_of

SCHEDULER_POOL = "spark.scheduler.pool"
_MOST_AGES = 500
_SUMMARY = "spark.sql.iceberg.snapshot-property"


@dataclass(frozen=True, slots=True)
class Flushed:
    """A micro-batch that is in snapshots. Times are seconds since the epoch; `ages`: (seconds, events) of quantiles."""

    after: int
    upto: int
    events: int
    tables: int
    snapshots: tuple[Snapshot, ...]
    rejected: int
    began: float
    ended: float
    ages: tuple[tuple[float, float], ...] = field(repr=False)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.snapshots)

    @property
    def files(self) -> int:
        return sum(each.files for each in self.snapshots)


def flush(
    log: DataFrame, *, after: int, log_id: UUID, writer: TableWriter, plans: Plans, at_once: int
) -> Flushed | None:
    """Write LOG_SCHEMA's batches behind the position `after`; None if there are none.

    One job reads them and finds out which tables they are for; then each table is written, `at_once` at a time, where
    small ones share jobs if there are more of them than that. All are attempted, so that a table that cannot be written
    stops no other; then the first failure is raised.
    """
    began = time.time()
    events = events_of(log.where(f"position > {after}")).persist()
    try:
        found = tables_of(summaries_of(events).collect())
        if not found:
            return None
        upto = max(each.upto for each in found)
        plans.choose(events=sum(each.events for each in found), table_rows=writer.tables.largest_mirror())
        summary = {LOG_ID: str(log_id), FROM_POSITION: str(after + 1), TO_POSITION: str(upto)}
        _name_positions(log.sparkSession, summary)
        writer.tables.begin()
        parts = [
            Part(
                key=each.table,
                table=tuple(json.loads(each.table)),
                events=events.where(events["table"] == each.table),
                count=each.events,
                bytes=each.bytes,
                fields=each.fields,
                has_metadata=each.has_metadata,
                after=after,
                upto=upto,
            )
            for each in found
        ]
        done = _write_all(parts, writer, events=events, summary=summary, at_once=at_once)
    finally:
        events.unpersist()
    ended = time.time()
    return Flushed(
        after=after,
        upto=upto,
        events=sum(part.count for part in parts),
        tables=len(parts),
        snapshots=tuple(snapshot for written in done for snapshot in written.snapshots),
        rejected=sum(written.rejected for written in done),
        began=began,
        ended=ended,
        ages=condensed([(ended - micros / 1e6, events) for each in found for micros, events in each.timestamps]),
    )


def condensed(ages: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Neighbours as one, with the higher age: flushes of many tables are remembered, too."""
    ages.sort()
    width = -(-len(ages) // _MOST_AGES)
    groups = (ages[first : first + width] for first in range(0, len(ages), max(width, 1)))
    return tuple((group[-1][0], sum(events for _, events in group)) for group in groups)


def _name_positions(spark: SparkSession, summary: Mapping[str, str]) -> None:
    """Each commit of this session says in its summary which positions it holds: they are equal for all tables."""
    for name, value in summary.items():
        spark.conf.set(f"{_SUMMARY}.{name}", value)


def _write_all(
    parts: list[Part], writer: TableWriter, *, events: DataFrame, summary: Mapping[str, str], at_once: int
) -> list[Written]:
    """A change log and its mirror are written beside each other, unless the former shares a job with others."""
    if len(parts) == 1 and len(writes := writer.writes(parts[0])) == 1:
        return [writer.write(writes[0])]
    context = events.sparkSession.sparkContext
    join_pool = partial(context.setLocalProperty, SCHEDULER_POOL, context.getLocalProperty(SCHEDULER_POOL) or "default")
    with ThreadPoolExecutor(at_once, thread_name_prefix="table", initializer=join_pool) as pool:
        found = [pool.submit(writer.writes, part) for part in parts]
        wait(found)
        known: list[Write] = [write for future in found if future.exception() is None for write in future.result()]
        failures = [failure for future in found if (failure := future.exception()) is not None]
        groups, alone = grouped(known, at_once=at_once)
        small = SmallTables(writer, events, summary=summary, pool=pool)
        written: list[Written] = []
        for group in groups:
            outcome = small.write(group)
            written += outcome.written
            alone += outcome.alone
            failures += outcome.failures
        done = [pool.submit(writer.write, write) for write in alone]
    # the first failure is raised, once all were attempted
    for failure in failures:
        raise failure
    return written + [future.result() for future in done]
