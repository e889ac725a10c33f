"""The durable log as a DataFrame, and its events one by one."""

import gzip
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipeline.transforms.shapes import Shape, merged, shape_of

LOG_SCHEMA = "position long, encoding int, tables string, content binary"
"""A batch of the log, as it was received: `content` is the JSON array of its events."""

EVENT_SCHEMA = (
    "position long, event int, table string, sequence long, timestamp timestamp, operation string, row_id string, "
    "row string, metadata map<string, string>, shape string"
)
"""An event. `table` is JSON: namespace and name. `row` is the JSON of `after`, or of `before` in a delete.

`shape` is set in the first event of a table in each Arrow block: it has the fields of all its events in the block.
"""

TABLE_SCHEMA = (
    "table string, events long, from_position long, to_position long, has_metadata boolean, "
    "shapes array<struct<position: long, event: int, shape: string>>, timestamps array<long>"
)
"""What a range of the log holds for a table; `timestamps` (microseconds) are the quantiles of `QUANTILES`."""
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
        ("shape", pa.string()),
    ]
)
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds of the years 1 to 9999, which engines can show; a timestamp beyond them becomes the nearest one."""
BLOCK_EVENTS = 10_000
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


_EVENTS = msgspec.json.Decoder(list[Event])
ROWS = msgspec.json.Decoder(float_hook=Decimal)
"""Reads the JSON of a row with all digits of its numbers."""
_TEXT = msgspec.json.Decoder(str)


def events_of(log: DataFrame) -> DataFrame:
    """EVENT_SCHEMA from LOG_SCHEMA: a row for each event."""
    return log.select("position", "encoding", "tables", "content").mapInArrow(_exploded, EVENT_SCHEMA)


def tables_of(events: DataFrame) -> DataFrame:
    """TABLE_SCHEMA from EVENT_SCHEMA: which tables, with how many events and which fields."""
    shapes = f.collect_list(f.when(f.col("shape").isNotNull(), f.struct("position", "event", "shape")))
    return events.groupBy("table").agg(
        f.count("*").alias("events"),
        f.min("position").alias("from_position"),
        f.max("position").alias("to_position"),
        (f.count("metadata") > 0).alias("has_metadata"),
        shapes.alias("shapes"),
        f.percentile_approx(f.unix_micros("timestamp"), list(QUANTILES), 1000).alias("timestamps"),
    )


def fields_of(shapes: Iterable[tuple[int, int, str]]) -> dict[str, Shape]:
    """The fields of a table's events, in the order in which they came, from `shapes` of TABLE_SCHEMA."""
    whole: Shape = {"struct": {}}
    for _position, _event, shape in sorted(shapes):
        whole = merged(whole, msgspec.json.decode(shape))
    return whole["struct"] if isinstance(whole, dict) else {}


def _exploded(blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    block = _Block()
    for batch in blocks:
        for row in batch.to_pylist():
            block.add(row)
            if block.size >= BLOCK_EVENTS:
                yield block.close()
                block = _Block()
    if block.size:
        yield block.close()


class _Block:
    """Events as columns, until there are enough for an Arrow block."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in _ARROW.names}
        self.shapes: dict[str, tuple[int, Shape]] = {}

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
        known = self.shapes.get(table)
        shape = merged(known[1] if known else None, _shape(raw))
        self.shapes[table] = (known[0] if known else self.size, shape)
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
        for first, shape in self.shapes.values():
            self.columns["shape"][first] = msgspec.json.encode(shape).decode()
        return pa.RecordBatch.from_pydict(self.columns, schema=_ARROW)


def _shape(raw: msgspec.Raw) -> Shape:
    try:
        return shape_of(ROWS.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError):  # `typed` rejects it, and says why
        return None


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
