"""A batch as the gateway has stored it, event by event. The functions that Spark calls are called without Spark."""

import gzip
import json
from typing import Any

import pyarrow as pa

from pipeline.transforms.events import _exploded, fields_of

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


def test_the_first_event_of_a_table_in_a_block_carries_the_fields_of_all() -> None:
    rows = exploded(event(after='{"a":1}'), event(after='{"b":"x","a":1.5}'))
    assert [row["shape"] is None for row in rows] == [False, True]
    assert fields_of([(1, 0, rows[0]["shape"])]) == {"a": "double", "b": "string"}


def test_fields_of_blocks_are_merged_in_the_order_of_the_log() -> None:
    shapes = [(9, 0, '{"struct":{"a":"string"}}'), (2, 1, '{"struct":{"a":"int"}}'), (2, 0, "null")]
    assert fields_of(shapes) == {"a": "int"}


def test_what_cannot_be_read_or_shown_harms_no_other_event() -> None:
    rows = exploded(event(after='{"a":"?"}').replace(b"?", b"\xff"), event(timestamp="1e308"))
    assert rows[0]["row"] == '{"a":"\\xff"}'
    assert rows[1]["timestamp"].year == 9999
