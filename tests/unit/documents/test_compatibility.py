"""The comparison of the management API with the one that it is a drop-in for."""

import json
from typing import Any

import pytest

from management import openapi_document
from scripts.compatibility import STORED, compared, differences
from scripts.compatibility_reasons import ABSENT, DIFFERENT
from scripts.wire_shapes import Shapes, shapes

STRING = {"type": "string"}


def document(*, query: str = "name", needed: bool = False, status: str = "200", **members: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}
    return {
        "paths": {
            "/thing/{id}": {
                "post": {
                    "parameters": [{"in": "query", "name": query, "required": needed, "schema": STRING}],
                    "requestBody": {"content": content},
                    "responses": {status: {"content": content}},
                }
            }
        },
        "components": {"schemas": {"Thing": {"type": "object", "required": ["a"], "properties": members}}},
    }


def apart(theirs: dict[str, Any], ours: dict[str, Any]) -> set[str]:
    name = "POST /thing/{id}"
    return set(differences(shapes(theirs)[name], shapes(ours)[name]))


def test_a_client_can_tell_each_of_these() -> None:
    base = document(a=STRING)
    assert apart(base, base) == set()
    assert apart(base, document(a=STRING, b=STRING)) == set()
    assert apart(document(a=STRING, b=STRING), base) == {"request: b", "answer: b"}
    assert apart(base, document(a={"type": "integer"})) == {
        "request: a is integer, not string",
        "answer: a is integer, not string",
    }
    assert apart(base, document(query="other", a=STRING)) == {"parameter: query name"}
    assert apart(base, document(query="other", needed=True, a=STRING)) == {
        "parameter: query name",
        "parameter needed: query other",
    }
    assert apart(base, document(status="204", a=STRING)) == {"status: 200"}
    nested = {"type": "array", "items": {"type": "object", "properties": {"c": STRING}}}
    assert apart(document(a=nested), document(a={"type": "array", "items": {"type": "object"}})) == {
        "request: a.c",
        "answer: a.c",
    }


def test_what_may_be_missing_and_what_must_be_sent_is_told() -> None:
    strict = document(a=STRING)
    loose = document(a=STRING)
    loose["components"]["schemas"]["Thing"]["required"] = []
    assert apart(strict, loose) == {"answer: a may be missing"}
    assert apart(loose, strict) == {"request needed: a"}


@pytest.fixture(scope="module")
def both() -> tuple[Shapes, Shapes]:
    return json.loads(STORED.read_text(encoding="utf-8")), shapes(openapi_document.document())


def test_every_operation_is_compared_and_every_difference_has_a_reason(both: tuple[Shapes, Shapes]) -> None:
    found = compared(*both)
    assert len(found) == len(both[0]) == 179
    assert [each for each in found if each.state == "different"] == []
    assert [each for each in found if each.state == "absent" and "" in each.notes] == []


def test_every_reason_explains_something(both: tuple[Shapes, Shapes]) -> None:
    told = " ".join(note for each in compared(*both) for note in each.notes)
    assert [why for why in {*DIFFERENT.values(), *ABSENT.values()} if why not in told] == []
