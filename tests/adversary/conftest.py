"""For the stories of attackers: the docstring of each begins with the rights that the attacker has.

`lake` is the victim's: a warehouse in which `engine` may create and modify everything. `outsider` may create in one
namespace, `outside`, and has no other right. `reader` may read one table, `sales.orders`.
"""

from pathlib import Path

import pytest

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Namespace, Tabular
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    """The warehouse as `engine` sees it, with the namespace `sales` in it."""
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


@pytest.fixture
def outsider(lake: Lake) -> Lake:
    """The warehouse as seen by a user who may only create in `outside`."""
    assert lake.create_namespace("outside").status == 200
    namespace = Namespace.objects.select_related("warehouse__project").get(path=["outside"])
    ledger.give(namespace_chain(namespace), [(PrincipalId("oidc~outsider"), Privilege.CREATE)], granted_by=ADMIN)
    projects.bump_epoch(namespace.warehouse.project_id)
    return lake.as_user("outsider")


@pytest.fixture
def reader(lake: Lake) -> Lake:
    """The warehouse as seen by a user who may read the table `sales.orders`, and no other."""
    assert lake.create_table("orders").status == 200
    table = Tabular.objects.select_related("namespace__warehouse__project").get(name="orders")
    ledger.give(tabular_chain(table), [(PrincipalId("oidc~reader"), Privilege.SELECT)], granted_by=ADMIN)
    projects.bump_epoch(table.namespace.warehouse.project_id)
    return lake.as_user("reader")


@pytest.fixture
def base(warehouse: Warehouse) -> Path:
    """The warehouse's directory."""
    return Path(warehouse.location.removeprefix("file://"))
