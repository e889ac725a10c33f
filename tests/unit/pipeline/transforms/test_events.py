"""A batch as the gateway has stored it, event by event. The functions that Spark calls are called without Spark."""

import gzip
import json
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pipeline.transforms.columns import METADATA_COLUMN, Column
from pipeline.transforms.events import _ARROW, QUANTILES, Found, _exploded, tables_of
from pipeline.transforms.rows import MISFITS, typed_blocks

TABLES = json.dumps([{"table": "a.t", "namespace": ["a"], "name": "t", "id": None}])


def exploded(*contents: bytes, encoding: int = 0) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {
        "position": list(range(1, len(contents) + 1)),
        "encoding": [encoding] * len(contents),
        "tables": [TABLES] * len(contents),
        "content": list(contents),
    }
    return [row for block in _exploded([pa.RecordBatch.from_pydict(columns)]) for row in block.to_pylist()]


def event(**members: str) -> bytes:
    """An event as JSON text; `members` are JSON, too."""
    whole = {"sequence": "1", "timestamp": "5", "operation": '"INSERT"', "table": '"a.t"', "rowId": '"r"'} | members
    return ("[{" + ",".join(f'"{name}":{value}' for name, value in whole.items()) + "}]").encode()


def test_rows_keep_all_digits_as_they_were_sent() -> None:
    (row,) = exploded(event(after='{"a": 1.10, "b":9223372036854775808}'))
    assert row["row"] == '{"a": 1.10, "b":9223372036854775808}'
    assert (row["position"], row["event"], row["table"], row["sequence"]) == (1, 0, '["a","t"]', 1)


@pytest.fixture
def usual_recursion() -> Iterator[None]:
    """Whatever was allowed before."""
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("member", ["after", "metadata"])
@pytest.mark.usefixtures("usual_recursion")
def test_rows_that_are_nested_as_deeply_as_python_reads_stop_nothing(member: str) -> None:
    depth = 990  # more than is left of the stack here
    (row,) = exploded(event(**{member: '{"a":' + "[" * depth + "]" * depth + "}"}))
    columns = (Column("a", "string"),)
    (block,) = typed_blocks(columns, [pa.RecordBatch.from_pylist([row], _ARROW)])
    (typed,) = block.to_pylist()
    assert len(typed[MISFITS]) == (member == "after")


def test_metadata_stay_away_from_rows_to_which_they_were_not_sent() -> None:
    (row,) = exploded(event(after='{"a": "x"}', metadata='{"lsn": 7}'))
    columns = (Column("a", "string"),)
    (block,) = typed_blocks(columns, [pa.RecordBatch.from_pylist([row], _ARROW)])
    assert block.column(METADATA_COLUMN).to_pylist() == [[("lsn", "7")]]
    (without,) = typed_blocks(columns, [pa.RecordBatch.from_pylist([row], _ARROW).drop_columns(["metadata"])])
    assert without.equals(block.drop_columns([METADATA_COLUMN]))


def test_a_delete_carries_what_was_before() -> None:
    (row,) = exploded(event(operation='"DELETE"', before='{"a":1}', after='{"a":2}'))
    assert row["row"] == '{"a":1}'
    assert exploded(event())[0]["row"] == "null"


def test_compressed_batches_are_read() -> None:
    (row,) = exploded(gzip.compress(event(after="{}")), encoding=1)
    assert row["row"] == "{}"


def test_metadata_are_texts() -> None:
    (row,) = exploded(event(metadata='{"a":"x\\n","b":1.50,"c":null,"d":{"e":[]}}'))
    assert dict(row["metadata"]) == {"a": "x\n", "b": "1.50", "c": None, "d": '{"e":[]}'}


def found(rows: list[dict[str, Any]]) -> list[Found]:
    names = ("position", "event", "table", "summary")
    return tables_of([tuple(row[name] for name in names) for row in rows if row["summary"] is not None])


def test_the_first_event_of_a_table_in_a_block_carries_what_all_have() -> None:
    rows = exploded(event(after='{"a":1}'), event(after='{"b":"x","a":1.5}', metadata='{"c":1}', timestamp="9"))
    assert [row["summary"] is None for row in rows] == [False, True]
    (table,) = found(rows)
    assert (table.table, table.events, table.upto, table.has_metadata) == ('["a","t"]', 2, 2, True)
    assert table.fields == {"a": "double", "b": "string"}
    assert [micros for micros, _ in table.timestamps] == [5000, 5000, 9000, 9000, 9000]
    assert sum(events for _, events in table.timestamps) == pytest.approx(2)


def test_what_blocks_have_is_added_up_in_the_order_of_the_log() -> None:
    first, second = (exploded(event(after=after)) for after in ('{"a":1}', '{"a":"x"}'))
    second[0]["position"] = 0
    (table,) = found([*first, *second])
    assert (table.events, table.fields, len(table.timestamps)) == (2, {"a": "string"}, 2 * len(QUANTILES))
    assert found([]) == []


def test_what_cannot_be_read_or_shown_harms_no_other_event() -> None:
    rows = exploded(event(after='{"a":"?"}').replace(b"?", b"\xff"), event(timestamp="1e308"))
    assert rows[0]["row"] == '{"a":"\\xff"}'
    assert rows[1]["timestamp"].year == 9999
