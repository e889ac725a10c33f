"""The types of JSON values, and what two of them have in common."""

import pytest

from pipeline.transforms.events import ROWS
from pipeline.transforms.shapes import MAX_DEPTH, Shape, merged, shape_of


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("null", None),
        ("true", "boolean"),
        ('"1"', "string"),
        ("2147483647", "int"),
        ("2147483648", "long"),
        ("99999999999999999999", "long"),
        ("1.0", "double"),
        ("1e2", "double"),
        ("[]", {"list": None}),
        ("[null, 1, 2.5]", {"list": "double"}),
        ('{"a": {"b": [{}]}}', {"struct": {"a": {"struct": {"b": {"list": {"struct": {}}}}}}}),
    ],
)
def test_a_value_has_a_shape(text: str, shape: Shape) -> None:
    assert shape_of(ROWS.decode(text)) == shape


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (None, "int", "int"),
        ("int", "long", "long"),
        ("double", "long", "double"),
        ("string", "int", "string"),
        ("int", "string", "int"),
        ({"list": None}, {"list": "int"}, {"list": "int"}),
        ({"list": "int"}, {"struct": {}}, {"list": "int"}),
        ({"struct": {"b": "int"}}, {"struct": {"a": None, "b": "long"}}, {"struct": {"b": "long", "a": None}}),
    ],
)
def test_shapes_are_merged_and_the_first_one_wins(first: Shape, second: Shape, both: Shape) -> None:
    assert merged(first, second) == both


def test_what_is_nested_too_deep_has_no_shape() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH * 2):
        value = [value]
    text = str(shape_of(value))
    assert text.count("list") == MAX_DEPTH + 1
    assert "int" not in text
