"""For the management API's routes: every answer is held against the OpenAPI document."""

import pytest

from tests.integration.management.openapi import CheckedClient
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def client(client: AsgiClient) -> CheckedClient:
    """The `client` of all integration tests, which also checks every answer."""
    return CheckedClient(client.headers)
