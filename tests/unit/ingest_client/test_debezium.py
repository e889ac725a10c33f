"""Debezium's published message format (documentation of its PostgreSQL and MySQL connectors) as events."""

import base64
import json
from typing import Any

import pytest

from ingest.client.errors import WrongLine
from ingest.client.files.debezium import Debezium
from ingest.client.files.lines import Line

Json = dict[str, Any]

SOURCE: Json = {
    "version": "3.3.1.Final",
    "connector": "postgresql",
    "name": "PostgreSQL_server",
    "ts_ms": 1559033904863,
    "ts_us": 1559033904863123,
    "ts_ns": 1559033904863123000,
    "snapshot": "false",
    "db": "postgres",
    "sequence": '["24023119","24023128"]',
    "schema": "inventory",
    "table": "customers",
    "txId": 555,
    "lsn": 24023128,
    "xmin": None,
}
ROW: Json = {"id": 1, "first_name": "Anne", "email": "annek@noanswer.org"}


def field(kind: str, name: str, logical: str | None = None, **more: object) -> Json:
    """A field of a Kafka Connect schema as the JSON converter writes it."""
    return {"type": kind, "optional": True, "field": name} | ({"name": logical, "version": 1} if logical else {}) | more


def enveloped(payload: Json, columns: list[Json]) -> Json:
    row = {"type": "struct", "optional": True, "name": "PostgreSQL_server.inventory.customers.Value"}
    fields = [
        {**row, "fields": columns, "field": "before"},
        {**row, "fields": columns, "field": "after"},
        field("struct", "source", "io.debezium.connector.postgresql.Source", fields=[field("string", "version")]),
        field("string", "op"),
        field("int64", "ts_ms"),
    ]
    name = "PostgreSQL_server.inventory.customers.Envelope"
    return {"schema": {"type": "struct", "fields": fields, "optional": False, "name": name}, "payload": payload}


def change(op: str, *, before: Json | None = None, after: Json | None = None, source: Json | None = None) -> Json:
    return {
        "before": before,
        "after": after,
        "source": SOURCE | (source or {}),
        "transaction": None,
        "op": op,
        "ts_ms": 1559033904999,
    }


def keyed(value: Json | None, key: Json) -> Json:
    return {"key": key, "value": value}


def read(value: object, *, key: str = "id", table: str | None = None, skips_truncates: bool = False) -> Json | None:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    reader = Debezium(table, [each for each in key.split(",") if each], 100, skips_truncates)
    event = reader(Line(7, content, len(content)))
    return None if event is None else json.loads(event.content)


def made(value: object, **options: Any) -> Json:
    event = read(value, **options)
    assert event is not None
    return event


COLUMNS = [field("int32", "id"), field("string", "first_name"), field("string", "email")]


@pytest.mark.parametrize("has_schema", [False, True], ids=["payload alone", "schema and payload"])
@pytest.mark.parametrize(
    ("op", "before", "after", "operation"),
    [
        ("c", None, ROW, "INSERT"),
        ("r", None, ROW, "INSERT"),
        ("u", ROW, {**ROW, "email": "new@noanswer.org"}, "UPDATE"),
        ("u", None, ROW, "UPDATE"),
        ("d", ROW, None, "DELETE"),
    ],
    ids=["create", "snapshot", "update", "update without before", "delete"],
)
def test_changes_of_rows(has_schema: bool, op: str, before: Json | None, after: Json | None, operation: str) -> None:  # noqa: FBT001
    message = change(op, before=before, after=after, source={"snapshot": "true" if op == "r" else "false"})
    event = made(enveloped(message, COLUMNS) if has_schema else message)
    assert event.pop("metadata") == {
        "op": op,
        "connector": "postgresql",
        "db": "postgres",
        "schema": "inventory",
        "table": "customers",
        "snapshot": "true" if op == "r" else "false",
        "ts_ms": "1559033904863",
        "lsn": "24023128",
        "txId": "555",
    }
    assert event == {
        "sequence": 107,
        "timestamp": 1559033904863,
        "operation": operation,
        "table": "inventory.customers",
        "rowId": "1",
        **({"before": before} if before else {}),
        **({"after": after} if after else {}),
    }


def test_the_table_may_be_replaced() -> None:
    assert made(change("c", after=ROW), table="people")["table"] == "people"


def test_mysql_has_no_schemas_so_its_database_is_the_namespace() -> None:
    source = {"connector": "mysql", "db": "shop", "schema": None, "file": "mysql-bin.000003", "pos": 484}
    event = made(change("c", after=ROW, source=source))
    assert event["table"] == "shop.customers"
    assert (event["metadata"]["file"], event["metadata"]["pos"]) == ("mysql-bin.000003", "484")


@pytest.mark.parametrize(
    "tombstone",
    [
        b"null",
        json.dumps(keyed(None, {"id": 1})).encode(),
        json.dumps({"topic": "t", "partition": 0, "offset": 8, "key": '{"id":1}', "payload": None}).encode(),
    ],
    ids=["alone", "with its key", "as kcat prints it"],
)
def test_tombstones_are_passed_over(tombstone: bytes) -> None:
    assert read(tombstone) is None


@pytest.mark.parametrize(
    "key",
    [{"id": 1004}, {"schema": {"type": "struct", "fields": [field("int32", "id")]}, "payload": {"id": 1004}}],
    ids=["payload alone", "schema and payload"],
)
@pytest.mark.parametrize("op", ["c", "d"])
def test_the_row_id_comes_from_the_records_key(key: Json, op: str) -> None:
    value = change(op, before=None, after={"name": "x"} if op == "c" else None)
    assert made(keyed(value, key), key="")["rowId"] == "1004"


def test_a_key_of_several_columns_is_an_array() -> None:
    value = change("c", after={"a": 1, "b": "x"})
    assert made(keyed(value, {"a": 1, "b": "x"}), key="")["rowId"] == '[1,"x"]'
    assert made(value, key="b,a")["rowId"] == '["x",1]'


def test_kcat_prints_key_and_value_as_texts() -> None:
    record = {
        "topic": "t",
        "partition": 0,
        "offset": 8,
        "tstype": "create",
        "ts": 1,
        "key": json.dumps({"payload": {"id": 5}, "schema": {"type": "struct", "fields": []}}),
        "payload": json.dumps(enveloped(change("c", after=ROW), COLUMNS)),
    }
    event = made(record, key="")
    assert (event["rowId"], event["after"]) == ("5", ROW)


def packed(number: int, size: int) -> str:
    return base64.b64encode(number.to_bytes(size, signed=True)).decode()


DECIMAL = "org.apache.kafka.connect.data.Decimal"


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (field("bytes", "v", DECIMAL, parameters={"scale": "2"}), packed(12345, 2), "123.45"),
        (field("bytes", "v", DECIMAL, parameters={"scale": "2"}), packed(-5, 1), "-0.05"),
        (field("bytes", "v", DECIMAL, parameters={"scale": "0"}), packed(10**30, 13), str(10**30)),
        (field("bytes", "v", DECIMAL, parameters={"scale": "-2"}), packed(7, 1), "700"),
        (field("struct", "v", "io.debezium.data.VariableScaleDecimal"), {"scale": 3, "value": packed(1, 1)}, "0.001"),
        (field("int32", "v", "io.debezium.time.Date"), 17702, "2018-06-20"),
        (field("int32", "v", "org.apache.kafka.connect.data.Date"), -1, "1969-12-31"),
        (field("int32", "v", "io.debezium.time.Time"), 54796945, "15:13:16.945000"),
        (field("int64", "v", "io.debezium.time.MicroTime"), 54796945104, "15:13:16.945104"),
        (field("int64", "v", "io.debezium.time.NanoTime"), 54796945104001, "15:13:16.945104001"),
        (field("int64", "v", "io.debezium.time.Timestamp"), 1529507596945, "2018-06-20T15:13:16.945000Z"),
        (field("int64", "v", "io.debezium.time.MicroTimestamp"), 1529507596945104, "2018-06-20T15:13:16.945104Z"),
        (field("int64", "v", "io.debezium.time.NanoTimestamp"), 1529507596945104001, "2018-06-20T15:13:16.945104001Z"),
        (field("int64", "v", "org.apache.kafka.connect.data.Timestamp"), -1, "1969-12-31T23:59:59.999000Z"),
        (field("string", "v", "io.debezium.time.ZonedTimestamp"), "2018-06-20T13:37:03Z", "2018-06-20T13:37:03Z"),
        (field("string", "v", "io.debezium.data.Json"), '{"a": 1}', '{"a": 1}'),
        (field("string", "v", "io.debezium.data.Uuid"), "a-b", "a-b"),
        (field("bytes", "v"), "3q2+7w==", "3q2+7w=="),
        (field("int64", "v"), 9007199254740993, 9007199254740993),
        (field("array", "v", items=field("int32", "", "io.debezium.time.Date")), [0, None], ["1970-01-01", None]),
        (
            field("struct", "v", fields=[field("int32", "d", "io.debezium.time.Date"), field("int32", "n")]),
            {"d": 1, "n": 1},
            {"d": "1970-01-02", "n": 1},
        ),
        (field("map", "v", values=field("int32", "", "io.debezium.time.Date")), {"k": 0}, {"k": "1970-01-01"}),
        (field("int32", "v", "io.debezium.time.Date"), None, None),
    ],
)
def test_logical_types(column: Json, value: object, expected: object) -> None:
    row = {"id": 1, "v": value}
    event = made(enveloped(change("u", before=row, after=row), [field("int32", "id"), column]))
    assert event["after"] == {"id": 1, "v": expected}
    assert event["before"] == {"id": 1, "v": expected}


def test_without_schemas_values_are_passed_on_as_they_are() -> None:
    content = json.dumps(change("c", after={"id": 1, "day": 17702})).replace("17702", '17702, "n": 1.10e-3').encode()
    assert b'"n":' in content
    reader = Debezium(None, ["id"], 0)
    event = reader(Line(1, content, len(content)))
    assert event is not None
    assert b"1.10e-3" in event.content


def test_a_value_that_is_not_of_its_type_is_refused() -> None:
    column = field("int32", "v", "io.debezium.time.Date")
    with pytest.raises(WrongLine, match=r"line 7: column 'v' is \"soon\", which is not a io.debezium.time.Date"):
        made(enveloped(change("c", after={"id": 1, "v": "soon"}), [column]))


def test_values_that_an_update_left_out_come_from_the_row_before_it() -> None:
    missing = "__debezium_unavailable_value"
    after = {"id": 1, "text": missing}
    assert made(change("u", before={"id": 1, "text": "long"}, after=after))["after"] == {"id": 1, "text": "long"}
    assert made(change("u", after=after))["after"] == after


def test_a_truncate_is_refused_unless_it_is_to_be_skipped() -> None:
    with pytest.raises(WrongLine, match="TRUNCATE cannot be sent"):
        read(change("t"))
    assert read(change("t"), skips_truncates=True) is None


@pytest.mark.parametrize(
    "message",
    [
        {"op": "m", "ts_ms": 1, "source": SOURCE, "message": {"prefix": "p", "content": "eA=="}},
        {"ts_ms": 1559033904863},
        {"status": "BEGIN", "id": "555:24023128", "ts_ms": 1, "event_count": None, "data_collections": None},
        {"source": SOURCE, "databaseName": "inventory", "ddl": "CREATE TABLE t (a int)", "tableChanges": []},
    ],
    ids=["logical message", "heartbeat", "transaction", "schema change"],
)
def test_messages_that_change_no_row_are_passed_over(message: Json) -> None:
    assert read(message) is None


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ({"id": 1, "first_name": "Anne"}, "use --format rows"),
        (change("x", after=ROW), 'op is "x"; it must be c, u, d, r, t or m'),
        (change("c"), "after is missing"),
        ({**change("c", after=ROW), "after": [1]}, r"after is \[1\]; it must be a JSON object"),
        (change("c", after=ROW, source={"table": None}), "source.table is missing: give --table"),
        (change("c", after={"name": "x"}), "the key column 'id' is missing or null; the columns are: name"),
        ({"key": {"id": 1}, "value": 3}, "value is 3; it must be a JSON object"),
        ({"topic": "t", "offset": 1, "payload": 3}, "texts of JSON"),
        (b"{", "line 7: it is not a JSON object"),
        (b"\xff", "line 7: it is not a JSON object"),
    ],
)
def test_mistakes_name_line_and_remedy(message: object, fault: str) -> None:
    with pytest.raises(WrongLine, match=fault):
        read(message)


def test_a_row_without_any_key() -> None:
    with pytest.raises(WrongLine, match="Give --key COLUMN"):
        read(change("c", after=ROW), key="")
    with pytest.raises(WrongLine, match="the row is unknown"):
        read(change("d"), key="")
    with pytest.raises(WrongLine, match="key has no columns"):
        read(keyed(change("c", after=ROW), {}), key="")
