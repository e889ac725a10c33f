"""Creations that a client stages first and commits later."""

from typing import Any

from tests.integration.catalog.lake import Lake, set_properties
from tests.servers.asgi_client import Answer

CREATE = {"type": "assert-create"}


def commit_staged(lake: Lake, name: str, staged: Any, **options: Any) -> Answer:
    """What a client sends to finish a creation that it staged."""
    return lake.commit(name, *creation_updates(staged), requirements=[CREATE], **options)


def creation_updates(staged: Any) -> list[dict[str, Any]]:
    metadata = staged["metadata"]
    return [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": metadata["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        set_properties(**metadata["properties"]),
    ]
