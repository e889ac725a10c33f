"""Small documents, requests and updates for the engine's tests."""

import json
from typing import Any

from catalog.iceberg import tables
from catalog.iceberg.tables import TableMetadata

Document = dict[str, Any]

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
OTHER_UUID = "00000000-03fe-4693-9a96-a0705ddf69c1"
LOCATION = "s3://bucket/t"
NOW = 1_760_000_000_000
FIELDS: list[Document] = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
    {"id": 3, "name": "name", "required": False, "type": "string"},
]


def raw(*values: object) -> list[bytes]:
    """Values as a request carries them."""
    return [json.dumps(each).encode() for each in values]


def schema(*more: Document, **members: Any) -> Document:
    """The plain columns and `more`."""
    return schema_of([*FIELDS, *more], **members)


def schema_of(fields: list[Document], /, **members: Any) -> Document:
    return {"type": "struct", "fields": fields, **members}


def field(field_id: int, name: str, type_: object, **members: object) -> Document:
    return {"id": field_id, "name": name, "required": False, "type": type_, **members}


def create(version: int = 2, /, **members: Any) -> TableMetadata:
    """A new table of this format version; `members` of the request replace the plain ones."""
    properties = {"format-version": str(version)} | members.pop("properties", {})
    request = {"name": "t", "schema": schema(), "properties": properties} | members
    return tables.create(json.dumps(request).encode(), uuid=UUID, location=LOCATION, now_ms=NOW)


def commit(base: TableMetadata | None, *updates: object, requires: tuple[object, ...] = ()) -> TableMetadata:
    """Commit updates a second after the table was made."""
    return tables.commit(
        base,
        raw(*requires),
        raw(*updates),
        base_location=None if base is None else f"{LOCATION}/metadata/base.metadata.json",
        now_ms=NOW + 1000,
        new_uuid=OTHER_UUID,
    )


def document(metadata: TableMetadata) -> Document:
    """The whole document as plain data."""
    found: Document = json.loads(metadata.encode())
    return found


def snapshot(snapshot_id: int, *, sequence: int | None = None, **members: object) -> Document:
    """A snapshot of a v2 table; its sequence number is its id unless said otherwise."""
    return {
        "snapshot-id": snapshot_id,
        "sequence-number": snapshot_id if sequence is None else sequence,
        "timestamp-ms": NOW + snapshot_id,
        "manifest-list": f"{LOCATION}/metadata/{snapshot_id}.avro",
        "summary": {"operation": "append"},
        **members,
    }


def add(snapshot_id: int, **members: Any) -> Document:
    return {"action": "add-snapshot", "snapshot": snapshot(snapshot_id, **members)}


def ref(snapshot_id: int, name: str = "main", **members: object) -> Document:
    base = {"action": "set-snapshot-ref", "ref-name": name, "snapshot-id": snapshot_id, "type": "branch"}
    return base | members


def appended(*snapshot_ids: int, base: TableMetadata | None = None) -> TableMetadata:
    """A table with these snapshots, each of them made current in a commit of its own."""
    metadata = base or create()
    for each in snapshot_ids:
        metadata = commit(metadata, add(each), ref(each))
    return metadata
