"""The schemas of events are a promise: compared with those of the last release, they only grow."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lakewarden.events.schemas import all_schemas
from lakewarden.events.types import EVENTS

RELEASED = Path(__file__).parent / "released_schemas.json"
"""Written anew for each release: `docs/reference/event-schemas.json` as it is then."""

Schemas = dict[str, dict[str, Any]]


def broken_promises(released: Schemas, now: Schemas) -> Iterator[str]:
    for name, before in released.items():
        after = now.get(name)
        if after is None:
            yield f"{name} is gone"
            continue
        for member in before["required"]:
            if member not in after["required"]:
                yield f"{name}: {member} is not always present any more"
        for member, schema in before["properties"].items():
            if after["properties"].get(member) != schema:
                yield f"{name}: {member} has changed"


def test_schemas_only_grow() -> None:
    assert list(broken_promises(json.loads(RELEASED.read_text()), all_schemas())) == []


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda now: now.pop("dropTable"), ["dropTable is gone"]),
        (
            lambda now: now["dropTable"]["required"].remove("name"),
            ["dropTable: name is not always present any more"],
        ),
        (lambda now: now["dropTable"]["properties"].pop("force"), ["dropTable: force has changed"]),
        (
            lambda now: now["dropTable"]["properties"].update(version={"type": "string"}),
            ["dropTable: version has changed"],
        ),
        (lambda now: now["dropTable"]["properties"].update(more={}), []),
        (lambda now: now["dropTable"]["required"].append("more"), []),
    ],
    ids=["type", "presence", "member", "type of a member", "more", "more that is always present"],
)
def test_a_broken_promise_is_noticed(change: Any, broken: list[str]) -> None:
    now = deepcopy(all_schemas())
    change(now)
    assert list(broken_promises(all_schemas(), now)) == broken


def test_every_schema_is_valid_and_has_an_id_of_its_own() -> None:
    schemas = all_schemas()
    assert schemas.keys() == EVENTS.keys()
    assert len({each["$id"] for each in schemas.values()}) == len(schemas)
    for each in schemas.values():
        Draft202012Validator.check_schema(each)
