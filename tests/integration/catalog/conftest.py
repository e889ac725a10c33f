"""For the catalog's routes: every answer is held against the OpenAPI document; `lake` is a warehouse to work in."""

from pathlib import Path

import pytest

from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tests.integration.catalog.deleted_namespaces import set_profile
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import Recorded, local
from tests.integration.catalog.openapi import CheckedClient
from tests.servers.asgi_client import AsgiClient

__all__ = ["set_profile"]


@pytest.fixture
def client(client: AsgiClient) -> CheckedClient:
    """The `client` of all integration tests, which also checks every answer."""
    return CheckedClient(client.headers)


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    """The warehouse as `engine` sees it, with the namespace `sales` in it."""
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


@pytest.fixture
def recorded() -> Recorded:
    """Tells the types of the changes recorded since the test asked for it; audit and outbox must agree on them."""
    audit, outbox = AuditEntry.objects.count(), OutboxEvent.objects.count()

    def since() -> list[str]:
        audited = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))[audit:]
        assert list(OutboxEvent.objects.order_by("sequence").values_list("type", flat=True))[outbox:] == audited
        return audited

    return since


@pytest.fixture
def base(warehouse: Warehouse) -> Path:
    """The warehouse's directory."""
    return local(warehouse.location)
