"""Makes random commits against a view document: mostly ones that make sense, some that must be refused."""

import random
from typing import Any

Document = dict[str, Any]


def view_schema(width: int) -> Document:
    fields = [{"id": each, "name": f"c{each}", "required": False, "type": "int"} for each in range(1, width + 1)]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def view_version(rng: random.Random, *, schema_id: int, at_ms: int) -> Document:
    dialects = rng.choice([["spark"], ["spark"], ["spark", "trino"], ["trino"], ["spark", "Spark"]])
    return {
        "version-id": rng.randint(1, 4),
        "timestamp-ms": at_ms,
        "schema-id": schema_id,
        "summary": {"engine": rng.choice(["a", "b"])},
        "default-namespace": ["ns"],
        "representations": [
            {"type": "sql", "sql": f"select {rng.randint(0, 5)}", "dialect": each} for each in dialects
        ],
    }


def view_commit(rng: random.Random, at_ms: int) -> list[Document]:
    """One to four updates."""
    updates: list[Document] = []
    for _ in range(rng.randint(1, 4)):
        updates += _update(rng, at_ms)
    return updates


def _update(rng: random.Random, at_ms: int) -> list[Document]:
    choice = rng.randint(0, 7)
    if choice <= 3:
        version = view_version(rng, schema_id=rng.choice([-1, 0, 0, 0, 1, 9]), at_ms=at_ms)
        current = {"action": "set-current-view-version", "view-version-id": rng.choice([-1, -1, -1, 1, 2])}
        updates: list[Document] = [{"action": "add-view-version", "view-version": version}]
        if rng.random() < 0.4:
            updates.insert(0, {"action": "add-schema", "schema": view_schema(rng.randint(1, 3))})
        return [*updates, current] if rng.random() < 0.8 else updates
    if choice == 4:
        return [{"action": "set-location", "location": f"s3://b/v{rng.randint(0, 1)}"}]
    if choice == 5:
        return [{"action": "set-current-view-version", "view-version-id": rng.randint(-1, 5)}]
    if choice == 6:
        return [{"action": "remove-properties", "removals": ["version.history.num-entries", "a"]}]
    names = ["version.history.num-entries", "replace.drop-dialect.allowed", "a"]
    values = {names[0]: str(rng.randint(0, 3)), names[1]: rng.choice(["true", "false"]), names[2]: "x"}
    return [{"action": "set-properties", "updates": {each: values[each] for each in rng.sample(names, 2)}}]
