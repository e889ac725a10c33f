"""Credentials for files are as strong as the rights that their receiver has after the call."""

from collections.abc import Iterator

import pytest

from catalog.access import namespace_chain
from catalog.models import Namespace
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.storage.profiles import PROFILES
from tenants.models import Warehouse
from tests.contracts.storage.bucket import OBJECTS
from tests.contracts.storage.vending_bucket import Keys, VendingProfile
from tests.installation import ADMIN
from tests.integration.catalog.bucket_warehouse import made
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.registering import register
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def warehouse(admin: AsgiClient, admin_context: RequestContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """On an object store that issues credentials, instead of the one in a directory."""
    monkeypatch.setattr(VendingProfile, "KEYS", Keys(), raising=False)
    monkeypatch.setitem(PROFILES, "bucket", VendingProfile)
    yield made(admin_context, "lake")
    OBJECTS.clear()


@pytest.fixture
def mallory(lake: Lake) -> Lake:
    """A user who may create in `sales`, and sees nothing of others there."""
    sales = Namespace.objects.select_related("warehouse__project").get(path=["sales"])
    ledger.give(namespace_chain(sales), [(PrincipalId("oidc~mallory"), Privilege.CREATE)], granted_by=ADMIN)
    return lake.as_user("mallory")


def test_registering_anothers_dropped_table_wins_no_credentials_for_its_files(lake: Lake, mallory: Lake) -> None:
    """Rights: create in `sales`; the table stays its owner's when it comes back."""
    file = lake.create_table("orders").json()["metadata-location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    back = register(mallory, "orders", file)
    assert back.status == 200
    assert back.json()["config"] == {}
    assert mallory.client.get(mallory.table("orders", "credentials")).status == 403


def test_who_registers_their_own_table_again_may_write_it(mallory: Lake) -> None:
    file = mallory.create_table("orders").json()["metadata-location"]
    assert mallory.client.delete(mallory.table("orders", purgeRequested="false")).status == 204
    (credential,) = register(mallory, "orders", file).json()["storage-credentials"]
    assert credential["config"]["bucket.key"].startswith("write ")
