"""Which columns events need."""

from typing import Any

import pytest

from pipeline.transforms.columns import MAX_COLUMNS, Change, Column, Type, column_for, needed, quoted, sql_type

HOME = {"type": "struct", "fields": [{"name": "city", "type": "string", "required": False}]}


def test_new_fields_are_new_columns_in_their_order() -> None:
    assert needed((), {"b": "int", "a": "double", "c": None, "d": {"list": None}, "e": {"struct": {}}}) == [
        Change(("b",), "long"),
        Change(("a",), "double"),
    ]


def test_columns_that_are_there_are_not_added() -> None:
    columns = (Column("a", "long"), Column("b", "string"), Column("c", "double"))
    assert needed(columns, {"a": "int", "b": "int", "c": "long"}) == []


def test_int_is_widened_and_nothing_else() -> None:
    columns = (Column("a", "int"), Column("b", "int"), Column("c", "float"))
    assert needed(columns, {"a": "long", "b": "int", "c": "double"}) == [Change(("a",), "long", widens=True)]


def test_structs_and_lists_of_structs_grow() -> None:
    columns = (Column("home", HOME), Column("homes", {"type": "list", "element": HOME}))
    more: dict[str, Any] = {"struct": {"city": "string", "zip": "int"}}
    assert needed(columns, {"home": more, "homes": {"list": more}}) == [
        Change(("home", "zip"), "long"),
        Change(("homes", "element", "zip"), "long"),
    ]


def test_names_that_differ_in_case_only_and_names_like_ours_have_their_own_columns() -> None:
    changes = needed((Column("_cdc_sequence", "long"),), {"id": "int", "ID": "int", "_CDC_sequence": "string"})
    names = [change.path[0] for change in changes]
    assert names[0] == "id"
    assert len({name.lower() for name in names} | {"_cdc_sequence"}) == 4
    columns = {name: Column(name, "long") for name in [*names, "_cdc_sequence"]}
    assert [column_for(field, columns, top=True) for field in ("id", "ID", "_CDC_sequence")] == names
    assert column_for("_cdc_sequence", columns, top=True) is None


def test_the_number_of_columns_and_the_length_of_names_are_bounded() -> None:
    many: dict[str, Any] = {f"f{number}": "int" for number in range(MAX_COLUMNS + 5)}
    assert len(needed((), many)) == MAX_COLUMNS
    assert needed((), {"": "int", "x" * 256: "int"}) == []


@pytest.mark.parametrize(
    ("column", "sql"),
    [
        ("long", "BIGINT"),
        ("decimal(9, 2)", "DECIMAL(9,2)"),
        ("fixed[16]", "BINARY"),
        ({"type": "list", "element": HOME}, "ARRAY<STRUCT<`city`: STRING>>"),
        ({"type": "map", "key": "string", "value": "long"}, "MAP<STRING, BIGINT>"),
    ],
)
def test_types_are_written_as_spark_reads_them(column: Type, sql: str) -> None:
    assert sql_type(column) == sql


def test_names_cannot_end_their_quotation() -> None:
    assert quoted("a", "b`; DROP", "c.d") == "`a`.`b``; DROP`.`c.d`"
