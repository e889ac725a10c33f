"""For the `/lakehouse/v1` facade: `house` calls it as `engine`, in the default project's only warehouse."""

import pytest

from tenants.models import Warehouse
from tests.integration.lakehouse.house import House
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def house(engine: AsgiClient, warehouse: Warehouse) -> House:
    """The facade with the namespace `default`."""
    found = House(engine)
    assert found.create_namespace("default").status == 200
    return found
