"""Parquet files of small tables, made in memory: the events of many tables in one job.

`pipeline.jobs.small_tables` puts them into the tables. Values are converted as for every other table (`rows`); only how
they are stored is here: https://iceberg.apache.org/spec/#parquet.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from pipeline.transforms.columns import CDC_COLUMNS, METADATA_COLUMN, METADATA_TYPE, Column
from pipeline.transforms.rows import IS_COMPLETE, MISFITS, POSITION, arrow_type, typed_blocks

FILES_SCHEMA = "table string, misfits long, day int, content binary, error string"
"""First a row for each table, with the number of its values that did not fit, or the reason why its files could not be
made; then one for each file. `day`: days since 1970-01-01 of the partition, null in a table without partitions.
"""
_ARROW = pa.schema(
    [
        ("table", pa.string()),
        ("misfits", pa.int64()),
        ("day", pa.int32()),
        ("content", pa.binary()),
        ("error", pa.string()),
    ]
)
_EVENT_COLUMNS = ("position", "event", "sequence", "timestamp", "operation", "row_id", "row")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_FIXED = 1024
_MOST_DAYS = 31
"""More files than that are not for the driver to write, one after the other."""
MOST_CONTENT = 64 * 1024 * 1024
"""Of the files of one job, which the driver holds: empty files of many columns are much larger than their events."""
_UNWRITABLE = (pa.ArrowException, ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""Arrow raises OSError for what its writer of Parquet does not take."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """A table whose files are made. `schema` is Iceberg's, as JSON; events up to the position `after` are in it."""

    schema: bytes
    after: int
    is_daily: bool
    has_metadata: bool


def files_of(events: DataFrame, tables: Mapping[str, FileTable], *, tasks: int) -> DataFrame:
    """FILES_SCHEMA, from the events (EVENT_SCHEMA) of these tables."""
    columns = [*_EVENT_COLUMNS, *(["metadata"] if any(each.has_metadata for each in tables.values()) else [])]
    named = events.select("table", *columns).where(events["table"].isin(list(tables)))
    # a table's events meet in one task, so that it gets one file for each partition
    together = named.coalesce(1) if tasks == 1 else named.repartition(tasks, "table")
    return together.mapInArrow(partial(made, dict(tables), most=MOST_CONTENT // tasks), FILES_SCHEMA)


def is_writable(schema: Mapping[str, Any]) -> bool:
    """Whether files of a table with this schema (Iceberg's JSON) can be made here."""
    columns = {column.name: column.type for column in Column.parse_all(schema)}
    own = all(columns.get(name) == kind for name, kind in CDC_COLUMNS.items())
    # events without metadata would leave it out
    own &= not any(each["name"] == METADATA_COLUMN and each.get("required") for each in schema["fields"])
    metadata = columns.get(METADATA_COLUMN, METADATA_TYPE)
    own &= isinstance(metadata, dict) and all(metadata.get(name) == kind for name, kind in METADATA_TYPE.items())
    try:
        _fields(schema)
    except (KeyError, RecursionError, ValueError):
        return False
    return own


def made(
    tables: Mapping[str, FileTable], blocks: Iterable[pa.RecordBatch], *, most: int = MOST_CONTENT
) -> Iterator[pa.RecordBatch]:
    """Blocks of FILES_SCHEMA, one for each table, once all events were seen.

    `most`: bytes of all files together. A table whose files would be more than what is left of them has an error.
    """
    gathered: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
    for block in blocks:
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for number, table in enumerate(block.column("table").to_pylist()):
            rows[table].append(number)
        for table, numbers in rows.items():
            gathered[table].append(block.take(pa.array(numbers)))
    while gathered:
        table, found = gathered.popitem()
        block = _of_table(table, tables[table], found, most=most)
        most -= pc.sum(pc.binary_length(block.column("content"))).as_py() or 0
        yield block


def _of_table(name: str, table: FileTable, found: Sequence[pa.RecordBatch], *, most: int) -> pa.RecordBatch:
    row = {"table": name, "misfits": 0, "day": None, "content": None, "error": None}
    try:
        misfits, files = _files(table, found, most=most)
    except _UNWRITABLE as error:
        # one such table must not fail the job, which is for many others
        rows = [row | {"error": f"{type(error).__name__}: {error}"}]
    else:
        rows = [row | {"misfits": misfits}, *(row | {"day": day, "content": content} for day, content in files)]
    return pa.RecordBatch.from_pylist(rows, schema=_ARROW)


def _files(
    table: FileTable, found: Sequence[pa.RecordBatch], *, most: int
) -> tuple[int, list[tuple[int | None, bytes]]]:
    schema = msgspec.json.decode(table.schema)
    columns = Column.parse_all(schema)
    carries = table.has_metadata and METADATA_COLUMN in {column.name for column in columns}
    blocks = [each.select([*_EVENT_COLUMNS, *(["metadata"] if carries else [])]) for each in found]
    misfits, stored = 0, []
    for block in typed_blocks(columns, blocks):
        misfits += pc.sum(pc.list_value_length(block.column(MISFITS))).as_py() or 0
        due = pc.and_(block.column(IS_COMPLETE), pc.greater(block.column(POSITION), table.after))
        stored.append(_stored_block(block, schema).filter(due))
    rows = pa.Table.from_batches(stored)
    parts = _by_day(rows) if table.is_daily else [(None, rows)]
    files: list[tuple[int | None, bytes]] = []
    for day, part in parts:
        if part.num_rows:
            files.append((day, _file(part)))
            most -= len(files[-1][1])
        if most < 0 or len(files) > _MOST_DAYS:
            raise ValueError("the files are too many or too large for the driver")
    return misfits, files


def _by_day(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    days = pc.floor_temporal(rows.column("_cdc_timestamp"), unit="day").cast(pa.date32()).cast(pa.int32())
    for day in sorted(pc.unique(days).to_pylist()):
        yield day, rows.filter(pc.equal(days, day))


def _file(rows: pa.Table) -> bytes:
    content = BytesIO()
    pq.write_table(rows, content, compression="zstd", store_schema=False, store_decimal_as_integer=True)
    return content.getvalue()


def _stored_block(block: pa.RecordBatch, schema: Mapping[str, Any]) -> pa.RecordBatch:
    """The table's columns, named, typed and numbered as in a file. A column that no event has may be absent."""
    named = zip(schema["fields"], _fields(schema), strict=True)
    known = [(each["name"], field) for each, field in named if each["name"] in block.schema.names]
    arrays = [_stored(block.column(name), field.type) for name, field in known]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field for _, field in known]))


def _stored(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """`values` were made as a whole: none of their arrays is a slice of a larger one.

    Below a struct that is null they are empty and not null, which no UUID and no value of a fixed length is.
    """
    if pa.types.is_struct(kind):
        parts = [_stored(values.field(number), field.type) for number, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())
    if pa.types.is_map(kind):
        keys, items = _stored(values.keys, kind.key_type), _stored(values.items, kind.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=values.is_null())
    if pa.types.is_list(kind):
        elements = _stored(values.values, kind.value_type)
        return pa.ListArray.from_arrays(values.offsets, elements, type=kind, mask=values.is_null())
    if kind == pa.uuid():
        raw = [None if each is None else UUID(each).bytes if each else bytes(16) for each in values.to_pylist()]
        return pa.ExtensionArray.from_storage(kind, pa.array(raw, kind.storage_type))
    if pa.types.is_fixed_size_binary(kind):
        is_empty = pc.equal(pc.binary_length(values), 0)
        values = pc.if_else(is_empty, pa.scalar(bytes(kind.byte_width), pa.binary()), values)
    return values.cast(kind)


def _fields(struct: Mapping[str, Any]) -> list[pa.Field]:
    """As they are in a file. Raises KeyError or ValueError for types that cannot be written."""
    if not struct["fields"]:
        raise ValueError("Parquet has no groups without fields")
    names = _names([each["name"] for each in struct["fields"]])
    return [
        _field(name, each["type"], each["id"], required=each.get("required", False))
        for name, each in zip(names, struct["fields"], strict=True)
    ]


def _field(name: str, kind: Any, number: int, *, required: bool) -> pa.Field:  # noqa: ANN401  a type in Iceberg's JSON
    return pa.field(name, _type(kind), nullable=not required, metadata={"PARQUET:field_id": str(number)})


def _type(kind: Any) -> pa.DataType:  # noqa: ANN401  a type in Iceberg's JSON
    if isinstance(kind, str):
        if kind == "uuid":
            return pa.uuid()
        if kind.startswith("fixed"):
            length = int(kind.removeprefix("fixed[").removesuffix("]"))
            if not 0 < length <= _LONGEST_FIXED:
                raise ValueError(
                    "Parquet has no values without bytes, and a null takes as many bytes as a value in Arrow"
                )
            return pa.binary(length)
        return arrow_type(kind)
    match kind["type"]:
        case "list":
            required = kind.get("element-required", False)
            return pa.list_(_field("element", kind["element"], kind["element-id"], required=required))
        case "map":
            key = _field("key", kind["key"], kind["key-id"], required=True)
            required = kind.get("value-required", False)
            return pa.map_(key, _field("value", kind["value"], kind["value-id"], required=required))
        case _:
            return pa.struct(_fields(kind))


def _names(names: Sequence[str]) -> list[str]:
    """Names for a file, whose columns are known by their ids: some readers take a dot in one for a path."""
    taken = set(names)
    found: list[str] = []
    for name in names:
        plain = name
        if not _PLAIN_NAME.fullmatch(name):
            plain = f"_{re.sub(r'[^A-Za-z0-9]', '_', name)}"
            while plain in taken:
                plain += "_"
            taken.add(plain)
        found.append(plain)
    return found
