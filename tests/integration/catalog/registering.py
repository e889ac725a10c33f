"""Registers existing metadata files as tables."""

from typing import Any

from tests.integration.catalog.lake import Lake, Names
from tests.servers.asgi_client import Answer


def register(lake: Lake, name: str, location: str, *, within: Names = "sales", **more: Any) -> Answer:
    return lake.client.post(lake.namespace(within, "register"), {"name": name, "metadata-location": location, **more})
