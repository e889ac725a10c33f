"""The namespace `default` in the only warehouse, in which `engine` may create and modify; buckets are full again."""

import pytest

from ingest.api import requests, sockets, warehouses
from tenants.models import Warehouse
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(warehouse: Warehouse, engine: AsgiClient) -> Warehouse:
    for bucket in (requests._BUCKETS, sockets._OPENINGS):
        bucket._known.clear()
    warehouses._KEPT.clear()
    answer = engine.post(f"/catalog/v1/{warehouse.id}/namespaces", {"namespace": ["default"]})
    assert answer.status == 200
    return warehouse
