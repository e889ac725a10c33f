"""Each update of a commit costs the same, however many came before it and however large the table is.

Counted, not timed: the Python bytecode that the engine executes, and the calls that it makes.
"""

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import pytest

from catalog.iceberg import tables, views
from catalog.iceberg.tables import TableMetadata
from catalog.iceberg.views import ViewMetadata
from tests.unit.iceberg import documents
from tests.unit.iceberg.documents import Document

FEW, MANY = 30, 90
SIZE = 100


def _statistics(number: int, **members: object) -> Document:
    return {
        "snapshot-id": number,
        "statistics-path": f"{documents.LOCATION}/{number}",
        "file-size-in-bytes": 1,
    } | members


def _set_statistics(number: int) -> Document:
    found = _statistics(number, **{"file-footer-size-in-bytes": 1, "blob-metadata": []})
    return {"action": "set-statistics", "statistics": found}


def _set_partition_statistics(number: int) -> Document:
    return {"action": "set-partition-statistics", "partition-statistics": _statistics(number)}


def _key(number: int) -> Document:
    key = {"key-id": f"key-{number}", "encrypted-key-metadata": "AAAA"}
    return {"action": "add-encryption-key", "encryption-key": key}


def _schema(number: int) -> Document:
    found = documents.schema(documents.field(10 + number, f"column_{number}", "long"))
    return {"action": "add-schema", "schema": found}


def _spec(number: int) -> Document:
    field = {"source-id": 1, "transform": f"bucket[{number + 1}]", "name": f"part_{number}"}
    return {"action": "add-spec", "spec": {"fields": [field]}}


def _order(number: int) -> Document:
    field = {"source-id": 1, "transform": f"bucket[{number + 1}]", "direction": "asc", "null-order": "nulls-first"}
    return {"action": "add-sort-order", "sort-order": {"fields": [field]}}


def _tag(number: int) -> Document:
    return documents.ref(number, f"tag_{number}", type="tag")


@cache
def _table() -> TableMetadata:
    """A table that has `SIZE` of everything."""
    made = [
        update
        for number in range(1, SIZE + 1)
        for update in (
            documents.add(number),
            _tag(number),
            _set_statistics(number),
            _set_partition_statistics(number),
            _key(number),
            _schema(number),
            _spec(number),
            _order(number),
        )
    ]
    return documents.commit(documents.create(), *made)


@cache
def _view() -> ViewMetadata:
    request = {"name": "v", "schema": documents.schema(), "view-version": _version(0), "properties": {}}
    raw = documents.raw(request)[0]
    made = views.create(raw, uuid=documents.UUID, location=documents.LOCATION, now_ms=documents.NOW)
    limit = {"action": "set-properties", "updates": {"version.history.num-entries": "10000"}}
    return _commit_view(made, [limit, *(_add_version(each) for each in range(1, SIZE))])


def _version(number: int) -> Document:
    query = {"type": "sql", "sql": f"select {number}", "dialect": "spark"}
    found = {"version-id": 1, "timestamp-ms": documents.NOW, "schema-id": 0, "summary": {"engine": "spark"}}
    return found | {"representations": [query], "default-namespace": ["a"]}


def _add_version(number: int) -> Document:
    return {"action": "add-view-version", "view-version": _version(number)}


def _commit_view(base: ViewMetadata, updates: list[Document]) -> ViewMetadata:
    return views.commit(base, [], documents.raw(*updates), now_ms=documents.NOW)


OF_TABLES: dict[str, Callable[[int], Document]] = {
    "set-statistics": lambda number: _set_statistics(SIZE + number),
    "replace-statistics": _set_statistics,
    "remove-statistics": lambda number: {"action": "remove-statistics", "snapshot-id": number},
    "set-partition-statistics": lambda number: _set_partition_statistics(SIZE + number),
    "remove-partition-statistics": lambda number: {"action": "remove-partition-statistics", "snapshot-id": number},
    "add-encryption-key": lambda number: _key(SIZE + number),
    "remove-encryption-key": lambda number: {"action": "remove-encryption-key", "key-id": f"key-{number}"},
    "add-schema": lambda number: _schema(SIZE + number),
    "remove-schemas": lambda number: {"action": "remove-schemas", "schema-ids": [number]},
    "add-spec": lambda number: _spec(SIZE + number),
    "remove-partition-specs": lambda number: {"action": "remove-partition-specs", "spec-ids": [number]},
    "add-sort-order": lambda number: _order(SIZE + number),
    "add-snapshot": lambda number: documents.add(SIZE + number),
    "remove-snapshots": lambda number: {"action": "remove-snapshots", "snapshot-ids": [number]},
    "set-snapshot-ref": lambda number: documents.ref(number, f"branch_{number}"),
    "move main": documents.ref,
    "remove-snapshot-ref": lambda number: {"action": "remove-snapshot-ref", "ref-name": f"tag_{number}"},
    "set-properties": lambda number: {"action": "set-properties", "updates": {f"key-{number}": "value"}},
    "remove-properties": lambda number: {"action": "remove-properties", "removals": [f"key-{number}"]},
}
OF_VIEWS: dict[str, Callable[[int], Document]] = {
    "add-schema": _schema,
    "add-view-version": lambda number: _add_version(SIZE + number),
}


@pytest.mark.parametrize("kind", OF_TABLES)
def test_three_times_as_many_updates_of_a_table_cost_three_times_as_much(kind: str) -> None:
    def commit(updates: int) -> None:
        sent = documents.raw(*(OF_TABLES[kind](number) for number in range(1, updates + 1)))
        tables.commit(_table(), [], sent, base_location="s3://b/m", now_ms=documents.NOW, new_uuid=documents.OTHER_UUID)

    _table()
    _check_linear(commit)


@pytest.mark.parametrize("kind", OF_VIEWS)
def test_three_times_as_many_updates_of_a_view_cost_three_times_as_much(kind: str) -> None:
    base = _view()
    _check_linear(lambda updates: _commit_view(base, [OF_VIEWS[kind](each) for each in range(1, updates + 1)]))


def _check_linear(commit: Callable[[int], object]) -> None:
    """What one update costs beyond the cost of opening the table, among few and among many."""
    opening = _steps(lambda: commit(1))
    few = (_steps(lambda: commit(FEW)) - opening) / FEW
    many = (_steps(lambda: commit(MANY)) - opening) / MANY
    # an update of a table that must be read entirely costs thousands of steps
    assert few < 2_500
    assert many < few * 1.05


def _steps(work: Callable[[], object]) -> int:
    """Bytecode instructions executed in the engine's own code."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if "iceberg" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps
