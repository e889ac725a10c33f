"""The comparison of schemas finds what one allows and the other forbids."""

from typing import Any

import pytest

from tests.openapi.containment import Containment

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/node"}, "value": WHOLE}, "required": ["value"]}


def _object(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": TEXT}, **more}


FITTING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the same": (TEXT, TEXT),
    "a whole number is a number": (WHOLE, NUMBER),
    "fewer types": (TEXT, {"type": ["string", "null"]}),
    "fewer values": ({"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a", "b"]}),
    "a narrower range": ({"type": "integer", "minimum": 2}, {"type": "integer", "minimum": 1}),
    "more is required": (_object(required=["a"]), _object()),
    "more members, where others may stand": (_object(), {"type": "object"}),
    "one of several": (TEXT, {"anyOf": [WHOLE, TEXT]}),
    "several of several": ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [WHOLE, TEXT]}),
    "exactly one": (TEXT, {"oneOf": [WHOLE, TEXT]}),
    "within itself": ({"$ref": "#/node"}, {"$ref": "#/node"}),
}
LOOSER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another type": (TEXT, WHOLE),
    "more types": ({"type": ["string", "null"]}, TEXT),
    "any value": (TEXT, {"type": "string", "const": "a"}),
    "a wider range": ({"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}),
    "no range": (WHOLE, {"type": "integer", "maximum": 1}),
    "less is required": (_object(), _object(required=["a"])),
    "a member that may be anything": ({"type": "object"}, _object()),
    "other members": (_object(), _object(additionalProperties=False)),
    "other members of another type": (_object(), {"type": "object", "additionalProperties": TEXT}),
    "entries of another type": ({"type": "array", "items": TEXT}, {"type": "array", "items": WHOLE}),
    "entries of any type": ({"type": "array"}, {"type": "array", "items": WHOLE}),
    "entries that are repeated": ({"type": "array"}, {"type": "array", "uniqueItems": True}),
    "another branch": ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [WHOLE]}),
    "two of which one may fit": (WHOLE, {"oneOf": [WHOLE, NUMBER]}),
    "one of all": (_object(), {"allOf": [_object(), _object(required=["a"])]}),
    "within itself": ({"$ref": "#/loose"}, {"$ref": "#/node"}),
}


def _problems(inner: dict[str, Any], outer: dict[str, Any]) -> list[str]:
    loose = {**NODE, "properties": {"next": {"$ref": "#/loose"}, "value": NUMBER}}
    return Containment({"node": NODE, "loose": loose}, {"node": NODE}).problems(inner, outer, "here")


@pytest.mark.parametrize("case", FITTING)
def test_what_fits_is_not_reported(case: str) -> None:
    assert _problems(*FITTING[case]) == []


@pytest.mark.parametrize("case", LOOSER)
def test_what_is_looser_is_reported_with_its_place(case: str) -> None:
    found = _problems(*LOOSER[case])
    assert found
    assert all(each.startswith("here") for each in found)


def test_a_word_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(AssertionError, match="unevaluatedProperties"):
        _problems(TEXT, {"unevaluatedProperties": False})
