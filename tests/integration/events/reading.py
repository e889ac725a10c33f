"""Makes what events tell of, and reads events over REST."""

from typing import Any

from tenants.models import Warehouse
from tests.integration.catalog.lake import SCHEMA
from tests.servers.asgi_client import AsgiClient

EVENTS = "/management/v1/events"


def create(engine: AsgiClient, warehouse: Warehouse, namespace: str, *tables: str) -> None:
    prefix = f"/catalog/v1/{warehouse.id}"
    engine.post(f"{prefix}/namespaces", {"namespace": [namespace]})
    for name in tables:
        made = engine.post(f"{prefix}/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA})
        assert made.status == 200, made.body


def names(answer: Any) -> list[str]:
    return [f"{each['type']} {each['data'].get('name', '')}".strip() for each in answer["events"]]
