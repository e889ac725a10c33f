"""Table metadata of a wanted size (format version 2), as busy tables have it; for the scenarios."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

Json = dict[str, Any]

_START_MS = 1_760_000_000_000
_FIRST_ID = 5_000_000_000_000_000_000
_TYPES = ("long", "string", "timestamptz", "double", "decimal(18, 2)", "date", "boolean")


@dataclass(frozen=True, slots=True)
class Shape:
    """How much a table has gone through. `schemas` grow by one column each, up to `columns`.

    `files` are the earlier metadata files that its log names, as far as they can be registered.
    """

    columns: int
    snapshots: int
    schemas: int = 1
    files: int = 1


SMALL = Shape(columns=14, snapshots=2)
WORN = Shape(columns=14, snapshots=2, files=100)
"""A small table whose log of metadata files is full, as that of each table is that engines commit to."""
MEDIUM = Shape(columns=100, snapshots=55, files=54)
LARGE = Shape(columns=200, snapshots=1000, schemas=42, files=100)
BUSY = Shape(columns=200, snapshots=1000, files=100)


def schema(columns: int, schema_id: int = 0) -> Json:
    fields = [
        {
            "id": each,
            "name": f"attribute_{each:03d}",
            "required": each == 1,
            "type": _TYPES[each % len(_TYPES)],
            "doc": "as the source system delivered it",
        }
        for each in range(1, columns + 1)
    ]
    return {"type": "struct", "schema-id": schema_id, "fields": fields}


def snapshot(number: int, location: str) -> Json:
    """The `number`th append to a table, counted from 1, with the summary that Spark writes."""
    counts = {
        "added-data-files": 4,
        "added-records": 25_000,
        "added-files-size": 1_843_200,
        "changed-partition-count": 1,
    }
    totals = {"total-records": 25_000, "total-files-size": 1_843_200, "total-data-files": 4}
    summary = {"operation": "append", "spark.app.id": "app-20261121080000-0042"}
    summary |= {name: str(value) for name, value in counts.items()}
    summary |= {name: str(value * number) for name, value in totals.items()}
    summary |= {"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0"}
    summary |= {"engine-name": "spark", "engine-version": "4.1.4", "app-id": "app-20261121080000-0042"}
    summary |= {"iceberg-version": "Apache Iceberg 1.11.0 (commit 5c1a4e2f9b7d4c0d8e6a)"}
    snapshot_id = _FIRST_ID + number
    found: Json = {
        "sequence-number": number,
        "snapshot-id": snapshot_id,
        "timestamp-ms": _START_MS + number * 1000,
        "summary": summary,
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}-1-1f0c7a52-63ce-4d2b-9c69-6c0f5c8f0c11.avro",
        "schema-id": 0,
    }
    if number > 1:
        found["parent-snapshot-id"] = snapshot_id - 1
    return found


def document(shape: Shape, location: str) -> bytes:
    """A whole metadata file of a table at `location`."""
    snapshots = [snapshot(number, location) for number in range(1, shape.snapshots + 1)]
    schemas = [schema(shape.columns - shape.schemas + 1 + each, each) for each in range(shape.schemas)]
    last = snapshots[-1]["snapshot-id"]
    earlier = [
        {
            "timestamp-ms": _START_MS + number,
            "metadata-file": f"{location}/metadata/{number:05d}-{uuid4()}.metadata.json",
        }
        for number in range(shape.files)
    ]
    content = {
        "format-version": 2,
        "table-uuid": str(uuid4()),
        "location": location,
        "last-sequence-number": shape.snapshots,
        "last-updated-ms": snapshots[-1]["timestamp-ms"],
        "last-column-id": shape.columns,
        "current-schema-id": shape.schemas - 1,
        "schemas": schemas,
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "benchmarks", "write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": last,
        "refs": {"main": {"snapshot-id": last, "type": "branch"}},
        "snapshots": snapshots,
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [
            {"timestamp-ms": each["timestamp-ms"], "snapshot-id": each["snapshot-id"]} for each in snapshots
        ],
        "metadata-log": earlier,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def append_updates(first: int, last: int, location: str) -> list[Json]:
    """The updates that append snapshots `first` to `last` to main."""
    added = [{"action": "add-snapshot", "snapshot": snapshot(each, location)} for each in range(first, last + 1)]
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id(last)}
    return [*added, ref]


def snapshot_id(number: int) -> int:
    return _FIRST_ID + number
