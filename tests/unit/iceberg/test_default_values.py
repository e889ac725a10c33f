"""Which default values fit which types."""

from typing import Any

import pytest

from catalog.iceberg import default_values
from catalog.iceberg.types import AnyType, ListType, MapType, NestedField, StructType
from lakewarden.errors import InvalidArgument

POINT = StructType([NestedField(1, "x", "int", required=True)])
TAGS = ListType(2, "string", element_required=True)
PAIRS = MapType(3, "string", 4, "int", value_required=True)
ZONED, PLAIN = "2026-11-21T10:00:00.123456+00:00", "2026-11-21T10:00:00.123456"


@pytest.mark.parametrize(
    ("type_", "good", "wrong"),
    [
        ("boolean", [True, None], [1, "true"]),
        ("int", [-(2**31), 2**31 - 1], [2**31, 1.5, True, "1"]),
        ("long", [2**63 - 1], [2**63, "1"]),
        ("float", [1.0, 1.5], ["1.5", True, 1]),
        ("double", [1.0, 1.5], [[], 1]),
        ("string", ["", "x"], [1]),
        ("uuid", ["f79c3e09-677c-4bbd-a479-3f349cb785e7"], ["f79c3e09677c4bbda4793f349cb785e7", "x", 1]),
        ("binary", ["", "00ff"], ["0", "zz"]),
        ("fixed[2]", ["00ff"], ["00", "00ff00"]),
        ("decimal(4, 2)", ["14.20", "-0.05"], ["14.2", "141.20", 14.2, "x", "1E+2"]),
        ("date", ["2026-11-21"], ["21.11.2026", "20261121", "2026-13-01", 20000]),
        ("time", ["10:00:00.123456"], ["25:00:00", "14.20", "10", "10:00:00.123456789", 1]),
        ("timestamp", [PLAIN], [ZONED, "2026-11-21", "2026-11-21T10:00:00.123456789", 1]),
        ("timestamptz", [ZONED, f"{PLAIN}Z"], [PLAIN, f"{PLAIN}+02:00"]),
        ("timestamp_ns", ["2026-11-21T10:00:00.123456789"], ["2026-11-21T10:00:00.123456789+00:00"]),
        ("timestamptz_ns", ["2026-11-21T10:00:00.123456789+00:00"], ["x"]),
        ("unknown", [None], [1]),
        ("variant", [None], [1]),
        ("geometry", [None], ["x"]),
        (POINT, [{}, None], [{"1": 3}, []]),
        (TAGS, [["a"], []], [[1], "a"]),
        (PAIRS, [{"keys": ["a"], "values": [1]}], [{"keys": ["a"], "values": []}, {"keys": [1], "values": [1]}, []]),
    ],
)
def test_a_default_must_be_of_its_type(type_: AnyType, good: list[Any], wrong: list[Any]) -> None:
    for value in good:
        default_values.check(value, type_, "write-default of n")
    for value in wrong:
        with pytest.raises(InvalidArgument, match=r"Cannot parse .* to a .* value"):
            default_values.check(value, type_, "write-default of n")
