"""For the management API's routes: every answer is checked against the OpenAPI document."""

import pytest

from tenants.models import Warehouse
from tests.integration.management.openapi import CheckedClient
from tests.integration.management.town import Town, settle
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def client(client: AsgiClient) -> CheckedClient:
    """The `client` of all integration tests, which also checks every answer."""
    return CheckedClient(client.headers)


@pytest.fixture
def town(client: AsgiClient, admin: AsgiClient, warehouse: Warehouse) -> Town:
    """A project with Eve in it, who tries to get more rights than she has."""
    return settle(admin, warehouse)
