"""What other engines do in the middle of a flush, and rows that no table was made for."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyiceberg.types import BooleanType, LongType
from pyspark.sql import DataFrame

from pipeline.jobs.lake import Lake
from tests.pipeline.durable_log import change
from tests.pipeline.flushing import Stage

BIG = 2**53 + 1


def drop(stage: Stage) -> None:
    stage.catalog.drop_table((stage.namespace, "t"))


def rename(stage: Stage) -> None:
    stage.catalog.rename_table((stage.namespace, "t"), (stage.namespace, "moved"))


def remove_column(stage: Stage) -> None:
    with stage.table("t").update_schema() as update:
        update.delete_column("v")


def rename_column(stage: Stage) -> None:
    with stage.table("t").update_schema() as update:
        update.rename_column("v", "w")


def retype_column(stage: Stage) -> None:
    remove_column(stage)
    with stage.table("t").update_schema() as update:
        update.add_column("v", BooleanType())


def add_column_in_other_case(stage: Stage) -> None:
    with stage.table("t").update_schema() as update:
        update.add_column("V", LongType())


@pytest.mark.parametrize(
    ("action", "seen"),
    [
        (drop, [{"v": 2}]),
        (rename, [{"v": 2}]),
        (remove_column, [{"v": None}, {"v": 2}]),
        (rename_column, [{"w": 1, "v": None}, {"w": None, "v": 2}]),
        (retype_column, [{"v": None}, {"v": None}]),
        (add_column_in_other_case, [{"v": 1, "V": None}, {"v": 2, "V": None}]),
    ],
    ids=["dropped", "renamed", "a column removed", "a column renamed", "another type", "another case"],
)
def test_another_engine_changes_the_table_just_before_the_commit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, action: Callable[[Stage], None], seen: list[dict[str, Any]]
) -> None:
    stage.log.append([change("t", "a", 1, {"v": 1})])
    stage.flush()
    original, waiting = Lake.append, [action]

    def append(lake: Lake, table: tuple[str, ...], rows: DataFrame) -> None:
        if table == (stage.namespace, "t") and waiting:
            waiting.pop()(stage)
        original(lake, table, rows)

    monkeypatch.setattr(Lake, "append", append)
    stage.log.append([change("t", "b", 2, {"v": 2})])
    stage.flush()
    assert not waiting
    rows = [{name: value for name, value in row.items() if not name.startswith("_cdc_")} for row in stage.rows("t")]
    assert rows == seen
    if action is rename:
        assert [row["v"] for row in stage.rows("moved")] == [1]
    if action is retype_column:
        assert [(row["_cdc_sequence"], row["value"]) for row in stage.rows("t__rejected")] == [(2, "2")]


@pytest.mark.parametrize(
    ("action", "seen"),
    [(drop, {"b": {"v": 2}}), (remove_column, {"a": {"v": None}, "b": {"v": 2}})],
    ids=["dropped", "a column removed"],
)
def test_another_engine_changes_a_mirror_just_before_the_merge(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, action: Callable[[Stage], None], seen: dict[str, dict[str, Any]]
) -> None:
    stage.policy("mirror")
    stage.log.append([change("t", "a", 1, {"v": 1})])
    stage.flush()
    original, waiting = Lake.merge, [action]

    def merge(lake: Lake, table: tuple[str, ...], rows: DataFrame, columns: Sequence[str]) -> None:
        if waiting:
            waiting.pop()(stage)
        original(lake, table, rows, columns)

    monkeypatch.setattr(Lake, "merge", merge)
    stage.log.append([change("t", "b", 2, {"v": 2})])
    stage.flush()
    assert not waiting
    assert stage.mirror("t") == seen


def test_types_that_change_back_and_forth_nulls_everywhere_and_large_numbers(stage: Stage) -> None:
    values: list[Any] = [None, 1, "one", 2**31, True, None, BIG, 1.5, {"a": 1}, [1], -(2**63), 2**63, 7]
    for start in (0, 4, 8):
        batch = values[start : start + 4] if start < 8 else values[8:]
        stage.log.append([change("t", f"r{start + n}", start + n, {"x": x}) for n, x in enumerate(batch)])
        stage.flush()
    rows = {row["_cdc_sequence"]: row["x"] for row in stage.rows("t")}
    assert rows == {
        number: value if type(value) is int and -(2**63) <= value < 2**63 else None
        for number, value in enumerate(values)
    }
    rejected = {row["_cdc_sequence"]: row["value"] for row in stage.rows("t__rejected")}
    assert rejected == {2: '"one"', 4: "true", 7: "1.5", 8: '{"a":1}', 9: "[1]", 11: str(2**63)}


def test_rows_without_a_value_make_a_table_without_columns_of_theirs(stage: Stage) -> None:
    stage.log.append(
        [change("t", "a", 1, {"x": None, "y": {"z": None}}), change("t", "b", 2, None), change("t", "c", 3, {})]
    )
    stage.flush()
    assert [row["_cdc_row_id"] for row in stage.rows("t")] == ["a", "b", "c"]
    assert [name for name in stage.rows("t")[0] if not name.startswith("_cdc_")] == []


def test_names_that_only_a_machine_would_choose(stage: Stage) -> None:
    names = [
        "_cdc_row_id",
        "_CDC_ROW_ID",
        "a",
        "A",
        "ä",
        "Ä",
        "with.dot",
        "with`tick",
        "with space",
        "1",
        "select",
        "x" * 255,
    ]
    stage.log.append([change("t", "a", 1, dict.fromkeys(names, 5))])
    stage.log.append([change("t", "b", 2, dict.fromkeys(reversed(names), 6))])
    stage.flush()
    first, second = stage.rows("t")
    columns = [
        name for name in first if name not in {"_cdc_sequence", "_cdc_timestamp", "_cdc_operation", "_cdc_row_id"}
    ]
    assert (first["_cdc_row_id"], second["_cdc_row_id"]) == ("a", "b")
    assert len(columns) == len(names)
    assert len({name.lower() for name in columns}) == len(names)
    assert all((first[name], second[name]) == (5, 6) for name in columns)
