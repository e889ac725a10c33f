"""The changes of many small tables share one job of Spark; what it makes is put into each table by a commit of its own.

Only change logs that are as the pipeline makes them. Every other table is left to `TableWriter`, and so is one that
changes meanwhile.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from pipeline.jobs.data_files import NewFile
from pipeline.jobs.lake import Lake, TableChanged
from pipeline.jobs.metadata import Metadata
from pipeline.jobs.parts import Snapshot, Write, Written
from pipeline.jobs.policies import Kind
from pipeline.jobs.write import TableWriter
from pipeline.transforms.files import FileTable, files_of, is_writable

MOST_ROWS = 1000
MOST_BYTES = 1024 * 1024
"""A table with more in a flush is not small."""
GROUP_TABLES: Final = 250
GROUP_BYTES: Final = 32 * 1024 * 1024
"""Of one job, whose files are all in the driver's memory."""
_ROWS_OF_TASK: Final = 10_000

_FORMAT_VERSION: Final = 2
_ORDINARY: Final[Mapping[str, frozenset[str | None]]] = {
    "write.format.default": frozenset({None, "parquet"}),
    "write.parquet.compression-codec": frozenset({None, "zstd"}),
    "write.parquet.compression-level": frozenset({None}),
    "write.wap.enabled": frozenset({None, "false"}),
    "schema.name-mapping.default": frozenset({None}),
    "encryption.key-id": frozenset({None}),
}
_UNUSUAL: Final = ("write.parquet.bloom-filter-", "write.parquet.stats-enabled", "write.parquet.shred-")

log = logging.getLogger("lakewarden.pipeline")


def grouped(writes: Sequence[Write], *, at_once: int) -> tuple[list[list[Write]], list[Write]]:
    """Groups that share a job each, and the writes that do not.

    Few tables, which are written at the same time anyway, gain nothing.
    """
    small = [each for each in writes if _is_small(each)]
    if len(small) <= at_once:
        return [], list(writes)
    return list(_packed(small)), [each for each in writes if not _is_small(each)]


def _is_small(write: Write) -> bool:
    return write.kind is Kind.CHANGELOG and write.part.count <= MOST_ROWS and write.part.bytes <= MOST_BYTES


def _packed(writes: Sequence[Write]) -> Iterator[list[Write]]:
    group: list[Write] = []
    size = 0
    for each in writes:
        if group and (len(group) == GROUP_TABLES or size + each.part.bytes > GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(each)
        size += each.part.bytes
    yield group


def is_simple(metadata: Metadata) -> bool:
    """Whether files that are made here are what Iceberg's own writer would make for the table."""
    content, properties = metadata.content, metadata.properties
    return (
        content["format-version"] == _FORMAT_VERSION
        and content["sort-order"] == 0
        and all(properties.get(name) in values for name, values in _ORDINARY.items())
        and not any(name.startswith(_UNUSUAL) for name in properties)
        and (not _partitions(metadata) or _is_daily(metadata))
        and is_writable(metadata.schema)
    )


def _partitions(metadata: Metadata) -> list[Mapping[str, object]]:
    found: list[Mapping[str, object]] = metadata.content["partition-spec"]["fields"]
    return found


def _is_daily(metadata: Metadata) -> bool:
    fields = _partitions(metadata)
    if len(fields) != 1 or fields[0]["transform"] != "day":
        return False
    column = next((each for each in metadata.schema["fields"] if each["id"] == fields[0]["source-id"]), None)
    return column is not None and column["name"] == "_cdc_timestamp"


@dataclass(frozen=True, slots=True)
class _Ready:
    """A table that has all columns, and whose lock is held. `after`: the position up to which events are in it."""

    write: Write
    metadata: Metadata
    after: int


@dataclass(slots=True)
class _Made:
    """What the job made for a table."""

    files: list[NewFile] = field(default_factory=list)
    misfits: int = 0
    error: str | None = None


@dataclass(slots=True)
class Outcome:
    """Of a group: what was written, what is left to be written alone, and failures, of which one may be raised."""

    written: list[Written] = field(default_factory=list)
    alone: list[Write] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def add(self, writes: Sequence[Write], futures: Sequence[Future[Written | None]]) -> None:
        """None: it is to be written alone."""
        wait(futures)
        for write, future in zip(writes, futures, strict=True):
            if (failure := future.exception()) is not None:
                self.failures.append(failure)
            elif (written := future.result()) is not None:
                self.written.append(written)
            else:
                self.alone.append(write)


class SmallTables:
    """Of one flush. `events`: all of them; `summary`: what each snapshot says; `pool`: threads that may call Spark."""

    def __init__(self, writer: TableWriter, events: DataFrame, *, summary: Mapping[str, str], pool: Executor) -> None:
        self._writer = writer
        self._events = events
        self._summary = summary
        self._pool = pool

    @property
    def _lake(self) -> Lake:
        return self._writer.lake

    def write(self, group: Sequence[Write]) -> Outcome:
        """All are attempted. A table that another engine changes meanwhile is left to be written alone."""
        outcome = Outcome()
        found = [self._pool.submit(self._prepared, each) for each in group]
        wait(found)
        outcome.failures += [failure for future in found if (failure := future.exception()) is not None]
        known = [
            (write, future.result()) for write, future in zip(group, found, strict=True) if future.exception() is None
        ]
        outcome.alone += [write for write, prepared in known if prepared is None]
        ready = [prepared for _, prepared in known if prepared is not None]
        with ExitStack() as locks:
            for each in ready:
                locks.callback(self._writer.locks.give_back, each.write.target)
            made = self._pool.submit(self._made, ready).result() if ready else {}
            futures = [self._pool.submit(self._put, each, made.get(each.write.part.key)) for each in ready]
            outcome.add([each.write for each in ready], futures)
        return outcome

    def _prepared(self, write: Write) -> _Ready | None:
        """None: it is to be written alone. Otherwise the table's lock is held."""
        locks, target = self._writer.locks, write.target
        if not locks.try_take(target):  # waiting for maintenance of one table would delay all others
            return None
        prepared: list[_Ready] = []
        try:
            self._writer.tables.again(lambda: prepared.extend(self._simple(write)))
        finally:
            if not prepared:
                locks.give_back(target)
        return prepared[0] if prepared else None

    def _simple(self, write: Write) -> list[_Ready]:
        metadata, kind = self._writer.tables.ready(write.target, write.kind, write.part)
        if kind is not Kind.CHANGELOG or not is_simple(metadata):
            return []
        covered = metadata.covered(self._writer.log_id)
        return [_Ready(write, metadata, covered.to if covered else 0)]

    def _made(self, ready: Sequence[_Ready]) -> Mapping[str, _Made]:
        """By the keys of the tables; nothing if the job fails: then each is tried alone, and shows what is wrong."""
        tables = {
            each.write.part.key: FileTable(
                schema=msgspec.json.encode(each.metadata.schema),
                after=each.after,
                is_daily=bool(_partitions(each.metadata)),
                has_metadata=each.write.part.has_metadata,
            )
            for each in ready
        }
        rows = sum(each.write.part.count for each in ready)
        tasks = min(-(-rows // _ROWS_OF_TASK), self._events.sparkSession.sparkContext.defaultParallelism)
        # a table of which the job says nothing is written alone: a commit without files would note its positions
        made: defaultdict[str, _Made] = defaultdict(_Made)
        try:
            collected = files_of(self._events, tables, tasks=tasks).collect()
        except (PySparkException, Py4JError) as error:
            log.warning("The job for %d small tables failed, each is written alone: %s", len(ready), error)
            return {}
        for key, misfits, day, content, reason in collected:
            made[key].misfits += misfits
            made[key].error = made[key].error or reason
            if content is not None:
                made[key].files.append(NewFile(bytes(content), day))
        return made

    def _put(self, ready: _Ready, made: _Made | None) -> Written | None:
        """None: it is to be written alone."""
        write, done = ready.write, Written()
        if made is None or made.error is not None:
            if made is not None:
                log.info("%s: is written alone: %s", ".".join(write.target), made.error)
            return None
        if ready.after < write.part.upto:
            try:
                self._writer.tables.again(lambda: self._append(ready, made, done))
            except TableChanged:
                self._writer.tables.forget_one(write.target)
                return None
        if made.misfits:
            self._writer.reject(write.part, ready.metadata.columns, done)
        return done

    def _append(self, ready: _Ready, made: _Made, done: Written) -> None:
        target = ready.write.target
        self._writer.locks.ensure_ours()
        metadata = self._lake.append_files(target, made.files, made_for=ready.metadata, summary=self._summary)
        self._writer.tables.keep(target, metadata)
        if (covered := metadata.covered(self._writer.log_id)) is not None:
            done.snapshots.append(Snapshot.of(target, covered))
