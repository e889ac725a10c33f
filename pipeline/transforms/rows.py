"""Events of one table as rows of its columns, and what did not fit."""

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from pipeline.transforms.columns import (
    CDC_COLUMNS,
    METADATA_COLUMN,
    METADATA_TYPE,
    Column,
    decimal_of,
    is_supported,
    quoted,
    sql_type,
)
from pipeline.transforms.events import ROWS, allow_deep_rows
from pipeline.transforms.values import Misfit, Misfits, Row

POSITION, EVENT = "_cdc_position", "_cdc_event"
"""Where in the log an event is: beside the columns of a table, which may have one that is called `position`."""
MISFITS = "_cdc_misfits"
MISFIT_SCHEMA = f"{MISFITS} array<struct<field: string, value: string, reason: string>>"
IS_COMPLETE = "_cdc_is_complete"
"""False where a required column would be null: such a row cannot be written to the table at all."""

REJECTED_COLUMNS = (
    *(Column(name, kind, required=True) for name, kind in CDC_COLUMNS.items()),
    Column("field", "string"),
    Column("value", "string"),
    Column("reason", "string", required=True),
)
"""The table `<table>__rejected`: a value that did not fit, as JSON; without `field` it is the whole row."""

DELETED_COLUMNS = (
    Column("_cdc_sequence", "long", required=True),
    Column("_cdc_row_id", "string", required=True),
    Column("_cdc_written_at", "timestamptz", required=True),
)
"""The table `<mirror>__deleted`: the last delete of each row that a flush deleted, and when that was written."""

_OWN = tuple(Column(name, kind, required=True) for name, kind in CDC_COLUMNS.items())
_METADATA = Column(METADATA_COLUMN, METADATA_TYPE)
_ARROW_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
}


def written(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns of a table that hold the fields of events, without those of other types and our own."""
    ours = {*CDC_COLUMNS, METADATA_COLUMN}
    return tuple(column for column in columns if column.name not in ours and is_supported(column.type))


def typed_schema(columns: tuple[Column, ...], *, has_metadata: bool) -> str:
    """Of the rows that the typing function makes for a table of these columns."""
    every = (*_OWN, *([_METADATA] if has_metadata else []), *written(columns))
    named = ", ".join(f"{quoted(column.name)} {sql_type(column.type)}" for column in every)
    return f"{POSITION} long, {EVENT} int, {named}, {MISFIT_SCHEMA}, {IS_COMPLETE} boolean"


def typed(events: DataFrame, columns: tuple[Column, ...], *, has_metadata: bool) -> DataFrame:
    """The rows of events (EVENT_SCHEMA) of one table, which has these columns.

    `has_metadata`: whether any of the events has some. If not, the column does not go to Python and back.
    """
    carries = has_metadata and _METADATA.name in {column.name for column in columns}
    names = ["position", "event", "sequence", "timestamp", "operation", "row_id", *(["metadata"] if carries else [])]
    rows = events.select(*names, "row").mapInArrow(_typing(columns), typed_schema(columns, has_metadata=carries))
    return rows if carries else rows.withColumn(METADATA_COLUMN, f.lit(None).cast(sql_type(METADATA_TYPE)))


def changes(rows: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """The rows of the change log: the table's columns, in its order."""
    return rows.where(IS_COMPLETE).select(*(f.col(quoted(name)) for name in _stored(columns)))


def rejected(rows: DataFrame) -> DataFrame:
    """REJECTED_COLUMNS, a row for each value that did not fit."""
    each = rows.select(*CDC_COLUMNS, f.explode(MISFITS).alias("misfit"))
    return each.select(*CDC_COLUMNS, "misfit.field", "misfit.value", "misfit.reason")


def latest(rows: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """For each row id the change with the highest sequence; among equal ones the last of the log."""
    order = Window.partitionBy("_cdc_row_id").orderBy(f.desc("_cdc_sequence"), f.desc(POSITION), f.desc(EVENT))
    names = dict.fromkeys([*_stored(columns), "_cdc_operation"])
    ranked = rows.where(IS_COMPLETE).withColumn("_cdc_rank", f.row_number().over(order))
    return ranked.where("_cdc_rank = 1").select(*(f.col(quoted(name)) for name in names))


def deleted(newest: DataFrame) -> DataFrame:
    """DELETED_COLUMNS, from the rows of `latest`."""
    rows = newest.where("_cdc_operation = 'DELETE'")
    return rows.select("_cdc_sequence", "_cdc_row_id", f.current_timestamp().alias("_cdc_written_at"))


def _stored(columns: tuple[Column, ...]) -> list[str]:
    known = {*CDC_COLUMNS, METADATA_COLUMN, *(column.name for column in written(columns))}
    return [column.name for column in columns if column.name in known]


def _typing(columns: tuple[Column, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return partial(typed_blocks, columns)


def typed_blocks(columns: tuple[Column, ...], blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blocks of `typed_schema`, one for each of the given ones; their `metadata` may be absent."""
    allow_deep_rows()
    fields = written(columns)
    row = Row.of(fields, top=True)
    required = frozenset(row.required)
    for block in blocks:
        made = [_fitted(row, required, text) for text in block.column("row").to_pylist()]
        arrays = [block.column(name) for name in ("position", "event", "sequence", "timestamp", "operation", "row_id")]
        own = [POSITION, EVENT, *CDC_COLUMNS]
        if "metadata" in block.schema.names:
            arrays.append(block.column("metadata"))
            own.append(METADATA_COLUMN)
        arrays += [
            pa.array([values.get(column.name) for values, _, _ in made], arrow_type(column.type)) for column in fields
        ]
        arrays.append(pa.array([[_described(each) for each in misfits] for _, misfits, _ in made], _MISFIT_TYPE))
        arrays.append(pa.array([complete for _, _, complete in made]))
        yield pa.RecordBatch.from_arrays(arrays, [*own, *(column.name for column in fields), MISFITS, IS_COMPLETE])


_MISFIT_TYPE = pa.list_(
    pa.struct([pa.field("field", pa.string()), pa.field("value", pa.string()), pa.field("reason", pa.string())])
)


def _fitted(row: Row, required: frozenset[str], text: str) -> tuple[dict[str, Any], list[Misfit], bool]:
    """The values by column, what did not fit, and whether no required column is missing."""
    misfits = Misfits()
    values: dict[str, Any] = {}
    try:
        whole = ROWS.decode(text)
    except msgspec.DecodeError as error:
        return values, [Misfit("", text, f"the row cannot be read: {error}")], not required
    if isinstance(whole, dict):
        values = row.convert(whole, "", misfits)
    elif whole is not None:
        misfits.add("", whole, "the row is not an object")
    missing = sorted(required - values.keys())
    if missing:
        misfits.add("", whole, f"the table requires the column {missing[0]}, for which the event has no fitting value")
    return values, misfits.found, not missing


def _described(misfit: Misfit) -> dict[str, str | None]:
    value = misfit.value if misfit.path == "" and isinstance(misfit.value, str) else _json(misfit.value)
    return {"field": misfit.path or None, "value": value, "reason": misfit.reason}


def _json(value: object) -> str:
    """JSON with all digits of its numbers: a `Decimal` is written as it was read."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def arrow_type(column: Any) -> pa.DataType:  # noqa: ANN401  a type in Iceberg's JSON
    """The Arrow type whose blocks Spark takes for this column."""
    if isinstance(column, str):
        if decimal := decimal_of(column):
            return pa.decimal128(*decimal)
        return pa.binary() if column.startswith("fixed") else _ARROW_TYPES[column]
    match column["type"]:
        case "list":
            return pa.list_(arrow_type(column["element"]))
        case "map":
            return pa.map_(arrow_type(column["key"]), arrow_type(column["value"]))
        case _:
            return pa.struct([pa.field(each.name, arrow_type(each.type)) for each in Column.parse_all(column)])
