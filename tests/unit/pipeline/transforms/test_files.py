"""Files of small tables: what the other path would write, with the ids of the table's columns."""

from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.transforms.events import _ARROW as EVENTS
from pipeline.transforms.files import FileTable, is_writable, made

DAY_US = 86_400_000_000
OWN = [
    {"id": 1, "name": "_cdc_sequence", "type": "long", "required": True},
    {"id": 2, "name": "_cdc_timestamp", "type": "timestamptz", "required": True},
    {"id": 3, "name": "_cdc_operation", "type": "string", "required": True},
    {"id": 4, "name": "_cdc_row_id", "type": "string", "required": True},
]
TEXTS = {"type": "map", "key-id": 101, "key": "string", "value-id": 102, "value": "string", "value-required": False}


def schema(*fields: tuple[str, Any], required: bool = False) -> dict[str, Any]:
    """Ids of the fields begin at 10."""
    own = [
        {"id": number, "name": name, "type": kind, "required": required}
        for number, (name, kind) in enumerate(fields, start=10)
    ]
    return {"type": "struct", "schema-id": 0, "fields": [*OWN, *own]}


def event(position: int, row: str, *, table: str = "t", at: int = 0, metadata: Any = None) -> dict[str, Any]:
    return {
        "position": position,
        "event": 0,
        "table": table,
        "sequence": position,
        "timestamp": at,
        "operation": "INSERT",
        "row_id": f"r{position}",
        "row": row,
        "metadata": metadata,
    }


def written(
    events: list[dict[str, Any]], *, after: int = 0, is_daily: bool = False, has_metadata: bool = True, **tables: Any
) -> list[dict[str, Any]]:
    named = {
        name: FileTable(msgspec.json.encode(each), after, is_daily=is_daily, has_metadata=has_metadata)
        for name, each in tables.items()
    }
    blocks = [pa.RecordBatch.from_pylist(events[start : start + 3], EVENTS) for start in range(0, len(events), 3)]
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(made(named, blocks))).to_pylist()
    return rows


def read(row: dict[str, Any]) -> pa.Table:
    return pq.read_table(BytesIO(row["content"]))


def ids(kind: pa.DataType | pa.Schema) -> list[Any]:
    found: list[Any] = []
    for field in [kind.field(number) for number in range(len(kind.names) if isinstance(kind, pa.Schema) else 0)] or (
        [kind.key_field, kind.item_field]
        if pa.types.is_map(kind)
        else [kind.value_field]
        if pa.types.is_list(kind)
        else list(kind)
        if pa.types.is_struct(kind)
        else []
    ):
        found.append(int(field.metadata[b"PARQUET:field_id"]))
        found += ids(field.type)
    return found


def test_each_table_gets_its_own_file_though_their_events_are_mixed() -> None:
    events = [event(n, f'{{"v": {n}}}', table="ab"[n % 2]) for n in range(1, 9)]
    rows = written(events, a=schema(("v", "long")), b=schema(("v", "string")))
    first = {row["table"]: row["misfits"] for row in rows if row["content"] is None}
    files = {row["table"]: read(row) for row in rows if row["content"] is not None}
    assert first == {"a": 0, "b": 4}
    assert sorted(files["a"]["v"].to_pylist()) == [2, 4, 6, 8]
    assert files["b"]["v"].to_pylist() == [None] * 4
    assert sorted(files["b"]["_cdc_row_id"].to_pylist()) == ["r1", "r3", "r5", "r7"]


def test_values_of_all_types_are_in_the_file_exactly() -> None:
    point = {"type": "struct", "fields": [{"id": 60, "name": "x y", "type": "long", "required": True}]}
    kinds: dict[str, tuple[Any, str, Any]] = {
        "big": ("long", str(2**53 + 1), 2**53 + 1),
        "small": ("int", "-1", -1),
        "half": ("float", "0.5", 0.5),
        "tenth": ("double", "0.1", 0.1),
        "yes": ("boolean", "true", True),
        "short": ("decimal(9, 2)", '"1.50"', Decimal("1.50")),
        "middle": ("decimal(18, 2)", '"-1.50"', Decimal("-1.50")),
        "exact": ("decimal(38, 4)", "1234567890123456789012345678901234.5678", Decimal("1234567890123456789012345678901234.5678")),
        "day": ("date", '"1969-12-31"', date(1969, 12, 31)),
        "at": ("timestamptz", '"2026-01-31T10:00:00.123456+02:00"', datetime(2026, 1, 31, 8, 0, 0, 123456, UTC)),
        "local": ("timestamp", '"2026-01-31T10:00:00"', datetime(2026, 1, 31, 10)),  # noqa: DTZ001
        "id": ("uuid", f'"{UUID(int=7)}"', UUID(int=7)),
        "raw": ("binary", '"AAE="', b"\x00\x01"),
        "two": ("fixed[2]", '"AAE="', b"\x00\x01"),
        "list": ({"type": "list", "element-id": 50, "element": point, "element-required": False}, '[{"x y": 1}, null]', [{"_x_y": 1}, None]),
        "map": ({"type": "map", "key-id": 51, "key": "string", "value-id": 52, "value": "uuid", "value-required": False}, f'{{"k": "{UUID(int=8)}", "n": null}}', [("k", UUID(int=8)), ("n", None)]),
        "point": (point, '{"x y": 5}', {"_x_y": 5}),
    }  # fmt: skip
    table = schema(*((name, kind) for name, (kind, _, _) in kinds.items()))
    full = "{" + ", ".join(f'"{name}": {text}' for name, (_, text, _) in kinds.items()) + "}"
    assert is_writable(table)
    summary, file = written([event(1, full), event(2, "{}")], t=table)
    assert (summary["error"], summary["misfits"]) == (None, 0)
    found = read(file)
    filled, empty = found.drop_columns([each["name"] for each in OWN]).to_pylist()
    assert filled == {name: value for name, (_, _, value) in kinds.items()}
    assert set(empty.values()) == {None}
    assert ids(found.schema) == [1, 2, 3, 4, *range(10, 24), 24, 50, 60, 25, 51, 52, 26, 60]


def test_statistics_are_in_the_footer() -> None:
    _, file = written([event(n, f'{{"v": {n}}}') for n in (5, 3, 4)], t=schema(("v", "long")))
    column = pq.ParquetFile(BytesIO(file["content"])).metadata.row_group(0).column(4)
    assert (column.statistics.min, column.statistics.max, column.statistics.null_count) == (3, 5, 0)
    assert column.compression == "ZSTD"


def test_a_day_is_a_file() -> None:
    times = [-1, 0, DAY_US - 1, DAY_US]
    events = [event(number, "{}", at=at) for number, at in enumerate(times, start=1)]
    rows = written(events, is_daily=True, t=schema())
    assert [(row["day"], read(row)["_cdc_sequence"].to_pylist()) for row in rows[1:]] == [
        (-1, [1]),
        (0, [2, 3]),
        (1, [4]),
    ]


def test_what_is_in_the_table_already_is_not_written_and_its_misfits_are_told() -> None:
    events = [event(1, '{"v": "no"}'), event(2, '{"v": 2}')]
    summary, file = written(events, after=1, t=schema(("v", "long")))
    assert (summary["misfits"], read(file)["v"].to_pylist()) == (1, [2])
    (only,) = written(events, after=2, t=schema(("v", "long")))
    assert (only["misfits"], only["content"]) == (1, None)


def test_a_row_without_a_required_value_is_not_in_the_file() -> None:
    events = [event(1, "{}"), event(2, '{"v": 2}')]
    summary, file = written(events, t=schema(("v", "long"), required=True))
    assert (summary["misfits"], read(file)["v"].to_pylist()) == (1, [2])
    (only,) = written(events[:1], t=schema(("v", "long"), required=True))
    assert only["misfits"] == 1


def test_metadata_are_written_where_there_are_some() -> None:
    table = schema(("_cdc_metadata", TEXTS))
    _, file = written([event(1, "{}", metadata=[("lsn", "7"), ("n", None)]), event(2, "{}")], t=table)
    assert read(file)["_cdc_metadata"].to_pylist() == [[("lsn", "7"), ("n", None)], None]
    _, without = written([event(1, "{}")], has_metadata=False, t=table)
    assert "_cdc_metadata" not in read(without).column_names


def test_names_that_a_reader_could_take_for_a_path_are_others_in_the_file() -> None:
    names = ["a.b", "_a_b", "position", "event", "ä", "1", "select"]
    _, file = written(
        [event(1, msgspec.json.encode(dict.fromkeys(names, 5)).decode())], t=schema(*((n, "long") for n in names))
    )
    found = read(file)
    assert found.column_names[4:] == ["_a_b_", "_a_b", "position", "event", "__", "_1", "select"]
    assert [column[0].as_py() for column in found.columns[4:]] == [5] * 7
    assert ids(found.schema)[4:] == list(range(10, 17))


def test_a_table_that_fails_is_told_and_stops_no_other() -> None:
    broken = {"type": "struct", "fields": [*OWN, {"id": 10, "name": "v", "type": "fixed[x]", "required": False}]}
    rows = written([event(1, "{}", table="bad"), event(2, "{}", table="good")], bad=broken, good=schema())
    found = {row["table"]: row for row in rows}
    assert "ValueError" in found["bad"]["error"]
    assert read(found["good"])["_cdc_sequence"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("v", "long"), ("_cdc_metadata", TEXTS)], True),
        ([("v", "variant")], False),
        ([("v", "timestamp_ns")], False),
        ([("v", {"type": "struct", "fields": []})], False),
        ([("v", {"type": "list", "element-id": 20, "element": "unknown"})], False),
        ([("_cdc_metadata", "string")], False),
        ([("v", "fixed[0]")], False),
        ([("v", "fixed[1000000]")], False),
    ],
)
def test_which_schemas_are_written_here(fields: list[tuple[str, Any]], expected: bool) -> None:  # noqa: FBT001
    assert is_writable(schema(*fields)) is expected


def test_a_schema_without_our_columns_is_not_written_here() -> None:
    other = [each | {"type": "timestamp"} if each["name"] == "_cdc_timestamp" else each for each in OWN]
    assert not is_writable({"type": "struct", "fields": other})
    assert not is_writable({"type": "struct", "fields": OWN[1:]})


def test_a_table_that_requires_metadata_is_not_written_here() -> None:
    assert not is_writable(schema(("_cdc_metadata", TEXTS), required=True))


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("uuid", str(UUID(int=7)), UUID(int=7)),
        ("fixed[2]", "AAE=", b"\x00\x01"),
    ],
)
def test_a_struct_that_is_null_may_have_uuids_and_fixed_lengths(
    kind: str,
    value: str,
    expected: object,
    required: bool,  # noqa: FBT001
) -> None:
    part = {"type": "struct", "fields": [{"id": 50, "name": "x", "type": kind, "required": required}]}
    rows = written([event(1, "{}"), event(2, f'{{"v": {{"x": "{value}"}}}}')], t=schema(("v", part)))
    assert rows[0]["error"] is None
    assert read(rows[1])["v"].to_pylist() == [None, {"x": expected}]


@pytest.mark.parametrize("number", ["1e99999999999999999999", "-1e-99999999999999999999"])
def test_a_number_with_an_endless_exponent_rejects_its_row_and_stops_no_other(number: str) -> None:
    events = [event(1, f'{{"v": {number}}}'), event(2, '{"v": 1.5}')]
    summary, file = written(events, t=schema(("v", "double")))
    assert (summary["error"], summary["misfits"]) == (None, 1)
    assert read(file)["v"].to_pylist() == [None, 1.5]


def test_files_that_are_too_many_or_too_large_for_the_driver_are_not_made() -> None:
    events = [event(number, "{}", at=number * DAY_US) for number in range(1, 34)]
    assert len(written(events[:31], is_daily=True, t=schema())) == 32
    (only,) = written(events, is_daily=True, t=schema())
    assert "too many" in only["error"]
    table = FileTable(msgspec.json.encode(schema()), 0, is_daily=False, has_metadata=False)
    block = pa.RecordBatch.from_pylist([event(1, "{}", table="a"), event(2, "{}", table="b")], EVENTS)
    rows = pa.Table.from_batches(list(made({"a": table, "b": table}, [block], most=1500))).to_pylist()
    assert [row["error"] is None for row in rows] == [True, True, False]
