"""JSON values become values of columns exactly, or are refused with a reason."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipeline.transforms.columns import Column, Type
from pipeline.transforms.events import ROWS
from pipeline.transforms.values import Misfits, Row, Unfit, converter


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("boolean", "true", True),
        ("int", "-2147483648", -(2**31)),
        ("long", "9223372036854775807", 2**63 - 1),
        ("long", "10.00", 10),
        ("long", "1e3", 1000),
        ("double", "0.1", 0.1),
        ("double", "9007199254740992", 2.0**53),
        ("double", "9007199254740994", 2.0**53 + 2),
        ("decimal(5, 2)", "123.45", Decimal("123.45")),
        ("decimal(5, 2)", "123", Decimal("123.00")),
        ("decimal(5, 2)", '"1.50"', Decimal("1.50")),
        (
            "decimal(38, 4)",
            "-1234567890123456789012345678901234.5678",
            Decimal("-1234567890123456789012345678901234.5678"),
        ),
        ("decimal(38, 0)", "9" * 38, Decimal("9" * 38)),
        ("decimal(38, 38)", "0." + "9" * 38, Decimal("0." + "9" * 38)),
        ("string", '"é\\u0000"', "é\x00"),
        ("date", '"2026-01-31"', date(2026, 1, 31)),
        ("timestamptz", '"2026-01-31T10:00:00.123456Z"', datetime(2026, 1, 31, 10, 0, 0, 123456, UTC)),
        ("timestamp", '"2026-01-31T10:00:00"', datetime(2026, 1, 31, 10)),  # noqa: DTZ001  the column has no zone
        ("uuid", '"550E8400-E29B-41D4-A716-446655440000"', "550e8400-e29b-41d4-a716-446655440000"),
        ("binary", '"AAE="', b"\x00\x01"),
        ("fixed[2]", '"AAE="', b"\x00\x01"),
    ],
)
def test_a_value_that_fits(column: Type, text: str, value: object) -> None:
    made = converter(column)(ROWS.decode(text), "", Misfits())
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("boolean", "1", "booleans, and the value is a number"),
        ("long", "true", "the value is a boolean"),
        ("long", "9223372036854775808", "larger"),
        ("long", "1.5", "fraction"),
        ("long", "1e400", "fraction or is larger"),
        ("int", "2147483648", "32 bits"),
        ("double", "9007199254740993", "exactly"),
        ("double", "1e400", "larger"),
        ("double", '"1"', "a string"),
        ("float", "16777217", "exactly"),
        ("decimal(5, 2)", "1234.5", "larger"),
        ("decimal(5, 2)", "1.234", "more digits"),
        ("decimal(38, 38)", "0." + "9" * 39, "more digits"),
        ("decimal(38, 0)", "1" + "0" * 38, "larger"),
        ("decimal(38, 2)", "1e-999999", "more digits"),
        ("decimal(5, 2)", '"NaN"', "larger"),
        ("decimal(5, 2)", '"x"', "not a number"),
        ("string", "5", "strings, and the value is a number"),
        ("date", '"2026-02-30"', "dates"),
        ("timestamptz", '"2026-01-31T10:00:00"', "with an offset"),
        ("timestamptz", '"2026-01-31T10:00:00.1234567Z"', "microsecond"),
        ("timestamptz", "1764000000000", "a number"),
        ("timestamp", '"2026-01-31T10:00:00Z"', "without an offset"),
        ("uuid", '"x"', "UUIDs"),
        ("fixed[3]", '"AAE="', "3 bytes"),
        ("variant", "1", "cannot write columns of the type variant"),
        ({"type": "list", "element": "long"}, "{}", "lists, and the value is an object"),
        ({"type": "map", "key": "string", "value": "int", "value-required": True}, '{"k": null}', "maps without nulls"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_a_reason(column: Type, text: str, reason: str) -> None:
    with pytest.raises(Unfit) as refused:
        converter(column)(ROWS.decode(text), "", Misfits())
    assert reason in str(refused.value)


def test_the_rest_of_a_row_is_kept() -> None:
    struct = {"type": "struct", "fields": [{"name": "x", "type": "long", "required": False}]}
    columns = (Column("a", "long"), Column("b", struct), Column("c", {"type": "list", "element": "long"}))
    misfits = Misfits()
    text = '{"a": 1, "b": {"x": "no", "y": 1}, "c": [1, true], "d": {}, "e": null, "": 5}'
    values = Row.of(columns, top=True).convert(ROWS.decode(text), "", misfits)
    assert values == {"a": 1, "b": {}, "c": [1, None]}
    assert [(each.path, each.value) for each in misfits.found] == [
        ("b.x", "no"),
        ("b.y", 1),
        ("c[1]", True),
        ("d", {}),
        ("", 5),
    ]
