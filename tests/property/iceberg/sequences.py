"""Tables that random commits lead through versions, for the properties of sequences of commits."""

import json
import random

from hypothesis import HealthCheck, settings

from catalog.iceberg import tables
from catalog.iceberg.tables import TableMetadata
from tests.property.iceberg.commits import Document, create_request

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
NOW = 1_760_000_000_000
ODD = b'{"n": 1.10, "big": 123456789012345678901234567890, "tiny":1e-999,"list":[ ]}'
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def create(rng: random.Random, format_version: int) -> TableMetadata:
    request = json.dumps(create_request(rng, format_version)).encode()
    made = tables.create(request, uuid=UUID, location="s3://b/t", now_ms=NOW).encode()
    return TableMetadata.decode(made[:-1] + b',"x-odd":' + ODD + b"}")


def encoded(values: list[Document]) -> list[bytes]:
    return [json.dumps(each).encode() for each in values]


def commit(base: TableMetadata, requirements: list[Document], updates: list[Document], step: int) -> TableMetadata:
    location = f"s3://b/t/metadata/{step}.metadata.json"
    return tables.commit(
        base, encoded(requirements), encoded(updates), base_location=location, now_ms=NOW + step, new_uuid=UUID
    )


def document(metadata: TableMetadata) -> Document:
    found: Document = json.loads(metadata.encode())
    return found


def check_whole(metadata: TableMetadata) -> None:
    """The strict reader finds nothing to complain about and nothing to fill in; all ids stay below their marks."""
    text = metadata.encode()
    assert TableMetadata.read_file(text).encode() == text
    assert TableMetadata.decode(text).encode() == text
    assert b'"x-odd":' + ODD in text
    found = json.loads(text)
    assert all(each["id"] <= found["last-column-id"] for one in found["schemas"] for each in one["fields"])
    partition_ids = [each["field-id"] for one in found["partition-specs"] for each in one["fields"]]
    assert max(partition_ids, default=999) <= found["last-partition-id"]
    rows = [each["first-row-id"] + each["added-rows"] for each in found["snapshots"] if "first-row-id" in each]
    assert max(rows, default=0) <= found.get("next-row-id", 0)
