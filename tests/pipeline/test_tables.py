"""Changes in the log become rows of tables, as another engine reads them."""

from datetime import UTC, datetime
from decimal import Decimal

from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, DecimalType, IntegerType, LongType, NestedField, StringType, TimestamptzType

from tests.pipeline.durable_log import change
from tests.pipeline.flushing import DEADLINE_S, Stage

BIG = 2**53 + 1


def test_a_change_log_has_each_event_once_with_its_row_as_it_was_sent(stage: Stage) -> None:
    stage.log.append(
        [
            change("users", "u1", 1, {"id": 1, "big": BIG, "name": "Ann", "score": 1.5, "on": True}),
            change("users", "u2", 2, {"id": 2, "tags": ["a", None], "home": {"city": "Graz", "zip": [8010]}}),
            change("users", "u1", 3, {"id": 1, "name": None}, operation="UPDATE", metadata={"lsn": 7, "db": "x"}),
        ]
    )
    stage.log.append([change("users", "u2", 4, {"id": 2}, operation="DELETE")], compressed=True)
    stage.flush()
    rows = stage.rows("users")
    assert [(row["_cdc_sequence"], row["_cdc_operation"], row["_cdc_row_id"]) for row in rows] == [
        (1, "INSERT", "u1"),
        (2, "INSERT", "u2"),
        (3, "UPDATE", "u1"),
        (4, "DELETE", "u2"),
    ]
    assert rows[0]["_cdc_timestamp"] == datetime.fromtimestamp(1_764_000_000.001, UTC)
    assert (rows[0]["id"], rows[0]["big"], rows[0]["name"], rows[0]["score"], rows[0]["on"]) == (
        1,
        BIG,
        "Ann",
        1.5,
        True,
    )
    assert (rows[1]["tags"], rows[1]["home"]) == (["a", None], {"city": "Graz", "zip": [8010]})
    assert (rows[2]["name"], dict(rows[2]["_cdc_metadata"])) == (None, {"lsn": "7", "db": "x"})
    assert rows[3]["id"] == 2
    assert stage.log.positions()[0] == stage.log.positions()[1]


def test_fields_may_be_called_as_what_the_pipeline_notes_of_an_event(stage: Stage) -> None:
    stage.policy("both")
    row = {"position": "p", "event": "e", "sequence": 9, "timestamp": "t", "table": "x", "row": 1, "metadata": {"m": 2}}
    stage.log.append([change("t", "a", 1, row), change("t", "a", 2, row | {"position": "q"}, operation="UPDATE")])
    stage.flush()
    assert [{name: each[name] for name in row} for each in stage.rows("t")] == [row, row | {"position": "q"}]
    assert stage.mirror("t_current") == {"a": row | {"position": "q"}}
    stage.log.append([change("t", "b", 3, {"sequence": "no number"})])
    stage.flush()
    assert [each["field"] for each in stage.rows("t__rejected")] == ["sequence"]


def test_metadata_come_and_go(stage: Stage) -> None:
    stage.policy("both")
    lsn = {"lsn": "7"}
    batches: list[list[dict[str, str] | None]] = [[lsn], [None, None], [None, lsn]]
    sequence = 0
    for batch in batches:
        events = [change("t", "a", sequence + n, {"v": sequence}, metadata=each) for n, each in enumerate(batch)]
        sequence += len(batch)
        stage.log.append(events)
        stage.flush()
    found = [row["_cdc_metadata"] for row in stage.rows("t")]
    assert [None if each is None else dict(each) for each in found] == [each for batch in batches for each in batch]
    assert stage.mirror("t_current") == {"a": {"v": 3}}


def test_the_columns_of_the_change_log_are_required_and_those_of_rows_are_not(stage: Stage) -> None:
    stage.log.append([change("users", "u1", 1, {"id": 1})])
    stage.flush()
    table = stage.table("users")
    assert [(field.name, str(field.field_type), field.required) for field in table.schema().fields] == [
        ("_cdc_sequence", "long", True),
        ("_cdc_timestamp", "timestamptz", True),
        ("_cdc_operation", "string", True),
        ("_cdc_row_id", "string", True),
        ("id", "long", False),
    ]
    assert [str(field.transform) for field in table.spec().fields] == ["day"]


def test_a_table_grows_with_its_rows(stage: Stage) -> None:
    stage.log.append([change("t", "a", 1, {"id": 1, "at": {"x": 1}, "points": [{"x": 1}]})])
    stage.flush()
    stage.log.append([change("t", "b", 2, {"new": "n", "at": {"y": 2.5}, "points": [{"y": "z"}], "Id": 7})])
    stage.log.append([change("t", "c", 3, {"_cdc_sequence": 5, "id": 3})])
    stage.flush()
    rows = stage.rows("t")
    assert rows[1]["new"] == "n"
    assert (rows[0]["at"], rows[1]["at"]) == ({"x": 1, "y": None}, {"x": None, "y": 2.5})
    assert rows[1]["points"] == [{"x": None, "y": "z"}]
    # in other case, or named like one of ours: they have columns of their own
    (other_case,) = (name for name in rows[1] if name.startswith("Id__"))
    (like_ours,) = (name for name in rows[2] if name.startswith("cdc_sequence__"))
    assert (rows[1]["id"], rows[1][other_case]) == (None, 7)
    assert (rows[2]["_cdc_sequence"], rows[2][like_ours], rows[2]["id"]) == (3, 5, 3)


def test_what_does_not_fit_is_kept_with_its_reason(stage: Stage) -> None:
    stage.log.append([change("t", "a", 1, {"n": 1, "s": "text", "l": [1]})])
    stage.flush()
    stage.log.append(
        '[{"sequence": 2, "timestamp": 1, "operation": "INSERT", "table": "t", "rowId": "b", "after":'
        ' {"n": 9223372036854775808, "s": 5, "l": [2, "x"], "empty": {}}},'
        ' {"sequence": 3, "timestamp": 1, "operation": "INSERT", "table": "t", "rowId": "c", "after":'
        ' {"n": 1.25, "s": null, "l": {"a": 1.10}}}]'
    )
    counted = stage.follower.status.freshness()["rejectedValues"]
    status = stage.flush()
    rows, rejected = stage.rows("t"), stage.rows("t__rejected")
    assert [(row["_cdc_sequence"], row["n"], row["s"], row["l"]) for row in rows] == [
        (1, 1, "text", [1]),
        (2, None, None, [2, None]),
        (3, None, None, None),
    ]
    assert {(row["_cdc_sequence"], row["field"], row["value"]) for row in rejected} == {
        (2, "n", "9223372036854775808"),
        (2, "s", "5"),
        (2, "l[1]", '"x"'),
        (2, "empty", "{}"),
        (3, "n", "1.25"),
        (3, "l", '{"a":1.10}'),
    }
    assert all(row["reason"] for row in rejected)
    assert status.freshness()["rejectedValues"] - counted == 6


def test_columns_of_a_table_that_was_there_keep_their_types(stage: Stage) -> None:
    schema = Schema(
        NestedField(1, "price", DecimalType(9, 2), required=False),
        NestedField(2, "at", TimestamptzType(), required=False),
        NestedField(3, "small", IntegerType(), required=False),
        NestedField(4, "code", StringType(), required=True),
    )
    stage.catalog.create_table((stage.namespace, "prices"), schema)
    stage.log.append(
        '[{"sequence": 1, "timestamp": 1, "operation": "INSERT", "table": "prices", "rowId": "a", "after":'
        ' {"price": 1234567.89, "at": "2026-01-31T10:00:00+02:00", "small": 3000000000, "code": "x"}},'
        ' {"sequence": 2, "timestamp": 1, "operation": "INSERT", "table": "prices", "rowId": "b", "after":'
        ' {"price": 1.999, "at": "yesterday", "small": 1, "code": "y"}},'
        ' {"sequence": 3, "timestamp": 1, "operation": "INSERT", "table": "prices", "rowId": "c", "after": {"small": 2}}]'
    )
    stage.flush()
    assert [(row["price"], row["at"], row["small"], row["code"]) for row in stage.rows("prices")] == [
        (Decimal("1234567.89"), datetime(2026, 1, 31, 8, tzinfo=UTC), 3_000_000_000, "x"),
        (None, None, 1, "y"),
    ]
    # int was widened; the row without the required column is in the other table as a whole
    assert isinstance(stage.table("prices").schema().find_type("small"), LongType)
    whole = [row for row in stage.rows("prices__rejected") if row["field"] is None]
    assert [(row["_cdc_sequence"], row["value"]) for row in whole] == [(3, '{"small":2}')]


def test_a_mirror_shows_rows_as_they_are_now(stage: Stage) -> None:
    stage.policy("mirror")
    stage.log.append([change("t", "a", 1, {"v": 1}), change("t", "b", 2, {"v": 2}), change("t", "c", 3, {"v": 3})])
    stage.flush()
    stage.log.append(
        [
            change("t", "a", 4, {"v": 4}, operation="UPDATE"),
            change("t", "b", 5, {"v": 2}, operation="DELETE"),
            change("t", "d", 6, {"v": 6}),
            change("t", "d", 7, {"v": 6}, operation="DELETE"),
            change("t", "c", 2, {"v": 99}, operation="UPDATE"),
            change("t", "a", 8, {"w": "new"}, operation="UPDATE"),
        ]
    )
    stage.flush()
    assert stage.mirror("t") == {"a": {"v": None, "w": "new"}, "c": {"v": 3, "w": None}}


def test_a_row_that_was_deleted_does_not_come_back_by_a_change_that_was_late(stage: Stage) -> None:
    """The same changes in any order, in any flushes, give the same mirror: the one with the highest sequence counts."""
    stage.policy("mirror")
    deletes = [change("t", row, 10, {"v": 0}, operation="DELETE") for row in ("a", "b")]
    stage.log.append([change("t", "a", 1, {"v": 1}), change("t", "c", 2, {"v": 2}), *deletes])
    stage.flush()
    stage.log.append([change("t", "a", 9, {"v": 9}), change("t", "b", 11, {"v": 11}), change("t", "c", 12, {"v": 12})])
    stage.flush()
    assert stage.mirror("t") == {"b": {"v": 11}, "c": {"v": 12}}
    stage.log.append([change("t", "b", 5, {"v": 5}, operation="UPDATE"), change("t", "a", 13, {"v": 13})])
    stage.flush()
    assert stage.mirror("t") == {"a": {"v": 13}, "b": {"v": 11}, "c": {"v": 12}}
    assert sorted(row["_cdc_row_id"] for row in stage.rows("t__deleted")) == ["a", "b"]


def test_both_makes_two_tables_of_a_table_and_many_tables_are_written_in_one_go(stage: Stage) -> None:
    stage.policy("both")
    names = [f"t{number}" for number in range(5)]
    stage.log.append([change(name, "a", number, {"v": number}) for number, name in enumerate(names)])
    stage.log.append([change(name, "a", 10, {"v": 10}, operation="UPDATE") for name in names])
    stage.flush()
    for number, name in enumerate(names):
        assert [row["v"] for row in stage.rows(name)] == [number, 10]
        assert stage.mirror(f"{name}_current") == {"a": {"v": 10}}


def test_a_flush_takes_as_many_tables_as_it_may_and_goes_on_with_the_rest(stage: Stage) -> None:
    names = [f"t{number}" for number in range(36)]
    stage.follower.stop()
    for first in range(0, 36, 4):
        stage.log.append([change(name, "a", first, {"v": first}) for name in names[first : first + 4]])
    stage.log.append([change(name, "b", 99, {"v": 99}) for name in names])
    with stage.follower.started(max_tables=10):
        stage.flush()
        assert [made.tables for made in stage.follower.status.flushes()] == [8, 8, 8, 8, 4, 36]
    for number, name in enumerate(names):
        assert [row["v"] for row in stage.rows(name)] == [number // 4 * 4, 99]


def test_what_was_written_is_not_written_again_though_nobody_noted_it(stage: Stage) -> None:
    """The process ended after the commit of one table, before those of the other and of the flushed position."""
    stage.log.append([change("one", "a", 1, {"v": 1}), change("two", "a", 2, {"v": 2, "x": {}})])
    stage.flush()
    before = stage.log.positions()[1]
    stage.log.append([change("one", "a", 3, {"v": 3}), change("two", "b", 4, {"v": 4, "x": {}})])
    stage.flush()
    stage.follower.stop()
    stage.catalog.drop_table((stage.namespace, "two"))
    stage.log.forget_flushes(after=before)
    stage.log.append([change("one", "a", 5, {"v": 5})])
    stage.follower.start()
    stage.flush()
    assert [row["_cdc_sequence"] for row in stage.rows("one")] == [1, 3, 5]
    assert [row["_cdc_sequence"] for row in stage.rows("two")] == [4]
    assert [row["_cdc_sequence"] for row in stage.rows("two__rejected")] == [2, 4]


def test_changes_by_other_engines_between_two_flushes_do_no_harm(stage: Stage) -> None:
    stage.log.append([change("t", "a", 1, {"v": 1, "w": 1})])
    stage.flush()
    with stage.table("t").update_schema() as update:
        update.delete_column("w")
        update.rename_column("v", "renamed")
        update.add_column("by_another", StringType())
    stage.log.append([change("t", "a", 2, {"v": 2, "w": 2})])
    stage.flush()
    rows = stage.rows("t")
    assert [(row["renamed"], row["v"], row["w"]) for row in rows] == [(1, None, None), (None, 2, 2)]


def test_a_table_that_was_dropped_is_made_again(stage: Stage) -> None:
    stage.log.append([change("t", "a", 1, {"v": 1})])
    stage.flush()
    stage.catalog.drop_table((stage.namespace, "t"))
    stage.log.append([change("t", "a", 2, {"v": "now a string"})])
    stage.flush()
    assert [row["v"] for row in stage.rows("t")] == ["now a string"]


def test_a_table_that_cannot_be_written_stops_no_other_and_nothing_is_lost(stage: Stage) -> None:
    unusable = Schema(NestedField(1, "_cdc_timestamp", BooleanType(), required=False))
    stage.catalog.create_table((stage.namespace, "bad"), unusable)
    stage.log.append([change("bad", "a", 1, {"v": 1}), change("good", "a", 2, {"v": 2})])
    stage.await_error("_cdc_timestamp")
    assert stage.log.positions()[1] < stage.log.positions()[0]
    stage.catalog.drop_table((stage.namespace, "bad"))
    stage.flush()
    assert [row["v"] for row in stage.rows("good")] == [2]
    assert [row["v"] for row in stage.rows("bad")] == [1]


def test_a_flush_that_was_asked_for_answers_with_figures_and_paths(stage: Stage) -> None:
    stage.follower.stop()
    stage.log.append([change("t", "a", 1, {"v": 1}), change("t", "b", 2, {"v": 2})])
    position = stage.log.positions()[0]
    request = stage.log.query(
        "insert into ingest_flush_request (id, warehouse_id, requested_at, requested_by, upto_position)"
        " values (gen_random_uuid(), %s, clock_timestamp(), 'oidc~test', %s) returning id",
        stage.log.warehouse,
        position,
    )[0][0]
    stage.follower.start()
    stage.flush()
    result = stage.log.answer_to(request, deadline_s=DEADLINE_S)
    assert (result["batchesFlushed"], result["eventsFlushed"]) == (1, 2)
    files = [task.file for task in stage.table("t").scan().plan_files()]
    assert result["paths"] == [file.file_path for file in files]
    assert result["bytesWritten"] == sum(file.file_size_in_bytes for file in files)
    assert result["usedFallback"] is False
