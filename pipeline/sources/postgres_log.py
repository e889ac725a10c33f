"""The durable log on Postgres as a streaming source of Spark's (its Python data source API).

Offsets are positions, which are dense and in the order of commits: what lies between two of them never changes. The
triggers of flushes lie here, too: there is nothing new to read until one of them says so.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ingest.log_statements import READ
from ingest.references import IN_KAFKA, Reference, unpack
from lakewarden.errors import InternalError
from pipeline.transforms.events import LOG_SCHEMA

if TYPE_CHECKING:
    from lakewarden.config import KafkaConfig
    from pipeline.sources.kafka_contents import KafkaContents

FORMAT = "lakewarden_log"
DSN_OPTION = "dsn-with-password"
KAFKA_OPTION = "kafka-with-password"
"""Spark's redaction knows the word `password`, so it shows these options nowhere."""

_ARROW = pa.schema(
    [("position", pa.int64()), ("encoding", pa.int32()), ("tables", pa.string()), ("content", pa.binary())]
)
_BLOCK_BYTES = 4 * 1024 * 1024
_SMALL_EVENTS = 10_000
_SMALL_BYTES = 8 * 1024 * 1024
_CONNECT_TIMEOUT_S = 10
_STATEMENT_TIMEOUT_MS = 300_000

_WAITING = """
    select h.last_position, h.flushed_position, h.buffered_events, h.buffered_bytes,
           (select extract(epoch from clock_timestamp() - b.received_at) from ingest_batch b
            where b.warehouse_id = h.warehouse_id and b.position > h.flushed_position order by b.position limit 1),
           (select max(r.upto_position) from ingest_flush_request r
            where r.warehouse_id = h.warehouse_id and r.state = 'pending')
    from ingest_log_head h where h.warehouse_id = %s
"""
_SIZES = """
    select position, events, bytes from ingest_batch
    where warehouse_id = %s and position > %s and position <= %s order by position limit %s
"""

_TABLE_TOO_MANY = """
    select f.position from (
        select min(b.position) as position from ingest_batch b cross join lateral jsonb_array_elements(b.tables) t
        where b.warehouse_id = %s and b.position > %s and b.position <= %s
        group by t -> 'namespace', t ->> 'name'
    ) f order by f.position offset %s limit 1
"""
"""Where a range of the log first names one table more than so many."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """When what waits is flushed: at this many events or bytes, or at this age. At most `max_*` of it at a time."""

    events: int
    bytes: int
    age_s: float
    max_events: int
    max_bytes: int
    max_tables: int

    def fire(self, waiting: "Waiting") -> bool:
        """Whether a flush is due."""
        return waiting.last > waiting.flushed and (
            waiting.events >= self.events
            or waiting.bytes >= self.bytes
            or (waiting.age_s or 0.0) >= self.age_s
            or (waiting.asked or 0) > waiting.flushed
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """What lies in a warehouse's log and not in a snapshot; `asked`: the position up to which a flush was asked for."""

    last: int
    flushed: int
    events: int
    bytes: int
    age_s: float | None
    asked: int | None


def connect(dsn: str) -> psycopg.Connection[Any]:
    """A connection for single statements, each bounded in time."""
    return psycopg.connect(
        dsn,
        autocommit=True,
        connect_timeout=_CONNECT_TIMEOUT_S,
        options=f"-c statement_timeout={_STATEMENT_TIMEOUT_MS}",
        application_name="lakewarden pipeline",
        # a pooler hands a session to others between two transactions
        prepare_threshold=None,
    )


def kafka_option(settings: "KafkaConfig | None") -> str:
    """The value of KAFKA_OPTION."""
    return "" if settings is None else json.dumps([settings.bootstrap_servers, settings.options.get_secret_value()])


class LogSource(DataSource):
    """The log of one warehouse. Options: DSN_OPTION, KAFKA_OPTION (as `kafka_option` makes it),
    `warehouse`, `triggers` (JSON) and `partitions`.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return LOG_SCHEMA

    def streamReader(self, schema: StructType) -> "LogReader":  # noqa: ARG002, N802  Spark's name
        return LogReader(self.options)


class LogReader(DataSourceStreamReader):
    """Asked by Spark for offsets and ranges in the driver, for rows in the executors."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._dsn = options[DSN_OPTION]
        self._kafka = options.get(KAFKA_OPTION, "")
        self._warehouse = options["warehouse"]
        self._triggers = Triggers(**json.loads(options["triggers"]))
        self._partitions = int(options["partitions"])
        self._connection: psycopg.Connection[Any] | None = None
        self._given = 0
        self._is_small = False

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_connection": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        return {"position": self._waiting().flushed}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        """Where the next micro-batch ends; where the last one ended, while no flush is due."""
        waiting = self._waiting()
        self._is_small = waiting.events <= _SMALL_EVENTS and waiting.bytes <= _SMALL_BYTES
        if self._triggers.fire(waiting):
            self._given = max(self._given, self._bounded(waiting))
        else:
            self._given = max(self._given, waiting.flushed)
        return {"position": self._given}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The positions as ranges of equal length; one of all where there is little to share."""
        first, last = start["position"], end["position"]
        count = min(1 if self._is_small else self._partitions, last - first)
        bounds = [first + (last - first) * number // count for number in range(count + 1)] if count > 0 else []
        return [InputPartition(each) for each in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Blocks of LOG_SCHEMA."""
        after, upto = partition.value
        block = _Block()
        with (
            ExitStack() as stack,
            connect(self._dsn) as connection,
            connection.transaction(),
            connection.cursor("log", binary=True) as cursor,
        ):
            contents = _Contents(self._kafka, stack)
            cursor.execute(READ, {"warehouse_id": self._warehouse, "after": after, "upto": upto})
            for position, _source, _number, _at, _events, size, encoding, tables, content in cursor:
                block.add((position, encoding, json.dumps(tables), bytes(content)), size)
                if block.size >= _BLOCK_BYTES:
                    yield block.close(contents)
                    block = _Block()
            if block.size:
                yield block.close(contents)

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _waiting(self) -> Waiting:
        row = self._query(_WAITING, (self._warehouse,))[0]
        last, flushed, events, size, age_s, asked = row
        return Waiting(last, flushed, events, size, None if age_s is None else float(age_s), asked)

    def _bounded(self, waiting: Waiting) -> int:
        """The last position of a micro-batch: as far as its limits allow, at least one batch."""
        after, end = max(waiting.flushed, self._given), waiting.last
        if waiting.events > self._triggers.max_events or waiting.bytes > self._triggers.max_bytes:
            end = self._bounded_by_size(after, end)
        if waiting.events > self._triggers.max_tables:
            rows = self._query(_TABLE_TOO_MANY, (self._warehouse, after, end, self._triggers.max_tables))
            end = max(rows[0][0] - 1, after + 1) if rows else end
        return end

    def _bounded_by_size(self, after: int, last: int) -> int:
        end, events, size = after, 0, 0
        for position, batch_events, batch_bytes in self._query(
            _SIZES, (self._warehouse, after, last, self._triggers.max_events)
        ):
            events, size = events + batch_events, size + batch_bytes
            if end > after and (events > self._triggers.max_events or size > self._triggers.max_bytes):
                break
            end = position
        return end

    def _query(self, statement: str, parameters: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """One attempt more on a connection that has ended meanwhile; then Spark ends the query with the error."""
        for attempt in (1, 2):
            if self._connection is None or self._connection.closed:
                self._connection = connect(self._dsn)
            try:
                return self._connection.execute(statement, parameters).fetchall()
            except psycopg.OperationalError:
                self._connection.close()
                if attempt == 2:  # noqa: PLR2004  the last one
                    raise
        raise AssertionError("the loop returns or raises")


class _Contents:
    """Those that are in Kafka, where a reader is made when the first of them is wanted."""

    def __init__(self, option: str, stack: ExitStack) -> None:
        self._option = option
        self._stack = stack
        self._reader: KafkaContents | None = None

    def read(self, references: list[Reference]) -> dict[Reference, bytes]:
        # for those who use Kafka alone
        from lakewarden.config import KafkaConfig  # noqa: PLC0415
        from pipeline.sources.kafka_contents import KafkaContents  # noqa: PLC0415

        if not self._option:
            raise InternalError(
                "The log refers to contents in Kafka: set LAKEWARDEN__INGEST__KAFKA__BOOTSTRAP_SERVERS for the pipeline"
            )
        if self._reader is None:
            servers, options = json.loads(self._option)
            settings = KafkaConfig(bootstrap_servers=servers, options=options)
            self._reader = self._stack.enter_context(KafkaContents(settings))
        return self._reader.read(references)


class _Block:
    """Rows of the log as columns, until there are enough for an Arrow block."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, str, bytes]] = []
        self.size = 0

    def add(self, row: tuple[int, int, str, bytes], size: int) -> None:
        self._rows.append(row)
        self.size += size

    def close(self, contents: _Contents) -> pa.RecordBatch:
        wanted = {row[0]: unpack(row[-1]) for row in self._rows if row[1] & IN_KAFKA}
        found = contents.read(list(wanted.values())) if wanted else {}
        rows = [
            (position, encoding & ~IN_KAFKA, tables, found[wanted[position]] if position in wanted else content)
            for position, encoding, tables, content in self._rows
        ]
        return pa.RecordBatch.from_pydict(dict(zip(_ARROW.names, zip(*rows, strict=True), strict=True)), schema=_ARROW)
