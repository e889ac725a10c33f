"""The durable log as a DataFrame, and its events one by one."""

import gzip
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from pipeline.transforms.shapes import Shape, merged, shape_of

LOG_SCHEMA = "position long, encoding int, tables string, content binary"
"""A batch of the log, as it was received: `content` is the JSON array of its events."""

EVENT_SCHEMA = (
    "position long, event int, table string, sequence long, timestamp timestamp, operation string, row_id string, "
    "row string, metadata map<string, string>, summary string"
)
"""An event. `table` is JSON: namespace and name. `row` is the JSON of `after`, or of `before` in a delete.

`summary` is set in the first event of a table in each Arrow block: the JSON of a `Summary` of all its events there.
"""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

_ARROW = pa.schema(
    [
        ("position", pa.int64()),
        ("event", pa.int32()),
        ("table", pa.string()),
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("operation", pa.string()),
        ("row_id", pa.string()),
        ("row", pa.string()),
        ("metadata", pa.map_(pa.string(), pa.string())),
        ("summary", pa.string()),
    ]
)
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds of the years 1 to 9999, which engines can show; a timestamp beyond them becomes the nearest one."""
BLOCK_EVENTS = 10_000
_DEEPEST = 10_000
_GZIP = 1


class Event(msgspec.Struct, rename="camel"):
    """An event as the gateway has accepted it; the rows stay text, so that nothing of them is lost."""

    sequence: int
    timestamp: int | float
    operation: str
    table: str
    row_id: str
    before: msgspec.Raw = msgspec.Raw(b"null")
    after: msgspec.Raw = msgspec.Raw(b"null")
    metadata: dict[str, msgspec.Raw] | None = None


class Summary(msgspec.Struct):
    """What some events of a table have together; `timestamps` (microseconds) are their quantiles of `QUANTILES`."""

    events: int
    bytes: int
    upto: int
    has_metadata: bool
    shape: msgspec.Raw
    timestamps: list[int]


@dataclass(frozen=True, slots=True)
class Found:
    """A table's events in a range of the log. `timestamps`: (microseconds, events that have about this one).

    `bytes`: of their rows, row ids and metadata, as they were received.
    """

    table: str
    events: int
    bytes: int
    upto: int
    has_metadata: bool
    fields: Mapping[str, Shape]
    timestamps: tuple[tuple[int, float], ...]


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise msgspec.DecodeError(f"the exponent of {text[:40]} is too large") from None


_EVENTS = msgspec.json.Decoder(list[Event])
_SUMMARIES = msgspec.json.Decoder(Summary)
ROWS = msgspec.json.Decoder(float_hook=_number)
"""Reads the JSON of a row with all digits of its numbers."""
_TEXT = msgspec.json.Decoder(str)


def events_of(log: DataFrame) -> DataFrame:
    """EVENT_SCHEMA from LOG_SCHEMA: a row for each event."""
    return log.select("position", "encoding", "tables", "content").mapInArrow(_exploded, EVENT_SCHEMA)


def summaries_of(events: DataFrame) -> DataFrame:
    """The summaries in EVENT_SCHEMA, with where they are: a few for each table, so that the driver can add them up."""
    return events.where("summary is not null").select("position", "event", "table", "summary")


def tables_of(summaries: Iterable[tuple[int, int, str, str]]) -> list[Found]:
    """Which tables there are, from rows of `summaries_of`."""
    found: dict[str, list[Summary]] = {}
    for _position, _event, table, summary in sorted(summaries):
        found.setdefault(table, []).append(_SUMMARIES.decode(summary))
    return [_added_up(table, parts) for table, parts in found.items()]


def _added_up(table: str, parts: list[Summary]) -> Found:
    """`parts` are in the order of the log."""
    shape: Shape = {"struct": {}}
    for part in parts:
        shape = merged(shape, msgspec.json.decode(part.shape))
    return Found(
        table=table,
        events=sum(part.events for part in parts),
        bytes=sum(part.bytes for part in parts),
        upto=max(part.upto for part in parts),
        has_metadata=any(part.has_metadata for part in parts),
        fields=shape["struct"] if isinstance(shape, dict) else {},
        timestamps=tuple((each, part.events / len(QUANTILES)) for part in parts for each in part.timestamps),
    )


def allow_deep_rows() -> None:
    """The gateway takes rows that are nested as deeply as its own stack allows. Less of Spark's is left, and a single
    such row would stop the pipeline.
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))


def _exploded(blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    allow_deep_rows()
    block = _Block()
    for batch in blocks:
        for row in batch.to_pylist():
            block.add(row)
            if block.size >= BLOCK_EVENTS:
                yield block.close()
                block = _Block()
    if block.size:
        yield block.close()


class _Table:
    """Of a block: the rows of its events in the block, and what they have together."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.bytes = 0
        self.has_metadata = False
        self.shape: Shape = None

    def summary(self, columns: Mapping[str, list[Any]]) -> str:
        times = sorted(columns["timestamp"][row] for row in self.rows)
        summary = Summary(
            events=len(self.rows),
            bytes=self.bytes,
            upto=max(columns["position"][row] for row in self.rows),
            has_metadata=self.has_metadata,
            shape=msgspec.Raw(msgspec.json.encode(self.shape)),
            timestamps=[times[int(quantile * len(times))] for quantile in QUANTILES],
        )
        return msgspec.json.encode(summary).decode()


class _Block:
    """Events as columns, until there are enough for an Arrow block."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in _ARROW.names}
        self.tables: defaultdict[str, _Table] = defaultdict(_Table)

    @property
    def size(self) -> int:
        return len(self.columns["position"])

    def add(self, row: dict[str, Any]) -> None:
        content = row["content"] if row["encoding"] != _GZIP else gzip.decompress(row["content"])
        names = {each["table"]: _key(each) for each in msgspec.json.decode(row["tables"])}
        for number, event in enumerate(_EVENTS.decode(content)):
            raw = event.before if event.operation == "DELETE" else event.after
            self._append(row["position"], number, names[event.table], event, raw)

    def _append(self, position: int, number: int, table: str, event: Event, raw: msgspec.Raw) -> None:
        known = self.tables[table]
        known.rows.append(self.size)
        known.bytes += _size(event, raw)
        known.has_metadata |= bool(event.metadata)
        known.shape = merged(known.shape, _shape(raw))
        values = (
            position,
            number,
            table,
            event.sequence,
            _micros(event.timestamp),
            event.operation,
            event.row_id,
            _readable(raw),
            [(name, _text(value)) for name, value in event.metadata.items()] if event.metadata else None,
            None,
        )
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    def close(self) -> pa.RecordBatch:
        for table in self.tables.values():
            self.columns["summary"][table.rows[0]] = table.summary(self.columns)
        return pa.RecordBatch.from_pydict(self.columns, schema=_ARROW)


def _shape(raw: msgspec.Raw) -> Shape:
    try:
        return shape_of(ROWS.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError):  # `typed` rejects it, and says why
        return None


def _size(event: Event, raw: msgspec.Raw) -> int:
    described = sum(len(name) + memoryview(value).nbytes for name, value in (event.metadata or {}).items())
    return memoryview(raw).nbytes + len(event.row_id) + described


def _micros(milliseconds: float) -> int:
    """Bounded before it is multiplied: the largest float would become infinity."""
    bounded = min(max(milliseconds, EARLIEST // 1000), LATEST // 1000)
    return min(max(round(bounded * 1000), EARLIEST), LATEST)


def _key(table: dict[str, Any]) -> str:
    return msgspec.json.encode([*table["namespace"], table["name"]]).decode()


def _text(raw: msgspec.Raw) -> str | None:
    """A value of `metadata`: the content of a string, the JSON of anything else."""
    text = _readable(raw)
    if text.startswith('"'):
        try:
            return _TEXT.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return text
    return None if text == "null" else text


def _readable(raw: msgspec.Raw) -> str:
    """JSON as text. What is not UTF-8 is escaped in a way that is not JSON, so that the row is rejected and kept."""
    return bytes(raw).decode(errors="backslashreplace")
