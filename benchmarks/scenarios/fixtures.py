"""Tables of a wanted shape, made through the public API: registered where files can be written, else committed."""

import uuid
from functools import partial

from benchmarks import metadata
from benchmarks.metadata import Shape
from benchmarks.rest_client import Json, in_parallel
from benchmarks.target import Target

_UPDATES_AT_ONCE = 250


def put_table(target: Target, namespace: str, name: str, shape: Shape) -> Json:
    """Create a table of this shape; returns the server's answer, a LoadTableResult."""
    if target.files is None:
        return _committed(target, namespace, name, shape)
    folder = target.files / f"bench-{uuid.uuid4()}"
    file = folder / "metadata" / f"00000-{uuid.uuid4()}.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(metadata.document(shape, f"file://{folder}"))
    return target.client.register(namespace, name, f"file://{file}")


def put_tables(target: Target, namespace: str, count: int) -> None:
    """Create `count` tables of two columns: `table_0000` and so on."""
    schema = metadata.schema(2)
    in_parallel(
        partial(target.client.create_table, namespace, f"table_{number:04d}", schema) for number in range(count)
    )


def _committed(target: Target, namespace: str, name: str, shape: Shape) -> Json:
    client = target.client
    first = shape.columns - shape.schemas + 1
    created = client.create_table(namespace, name, metadata.schema(first))
    location = str(created["metadata"]["location"])
    schemas = [
        {"action": "add-schema", "schema": metadata.schema(first + each, each)} for each in range(1, shape.schemas)
    ]
    if schemas:
        client.commit(namespace, name, [*schemas, {"action": "set-current-schema", "schema-id": -1}])
    for start in range(1, shape.snapshots + 1, _UPDATES_AT_ONCE):
        last = min(start + _UPDATES_AT_ONCE - 1, shape.snapshots)
        client.commit(namespace, name, metadata.append_updates(start, last, location))
    return client.load(namespace, name)
