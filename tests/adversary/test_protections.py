"""A protection guards against accidents: callers who may drop may remove it, which is audited; force is a separate
right.
"""

import pytest

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Namespace, Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.models import Warehouse
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import AsgiClient

API = "/management/v1"
MALLORY = PrincipalId("oidc~mallory")


@pytest.fixture
def protected(lake: Lake, admin: AsgiClient) -> Tabular:
    """`sales.orders`, which the administrator has protected."""
    assert lake.create_table("orders").status == 200
    table = Tabular.objects.select_related("namespace__warehouse__project").get(name="orders")
    body = {"protected": True, "reason": "closing of the year"}
    assert admin.post(protection(lake, table), body).status == 200
    return table


def protection(lake: Lake, table: Tabular) -> str:
    return f"{API}/warehouse/{lake.warehouse_id}/table/{table.uuid}/protection"


def give(target: Namespace | Tabular, *privileges: Privilege) -> None:
    chain = namespace_chain(target) if isinstance(target, Namespace) else tabular_chain(target)
    ledger.give(chain, [(MALLORY, each) for each in privileges], granted_by=ADMIN)


def test_who_writes_data_neither_lifts_a_protection_nor_gets_round_it(lake: Lake, protected: Tabular) -> None:
    """Rights: write on a protected table."""
    give(protected, Privilege.WRITE)
    mallory = lake.as_user("mallory")
    assert mallory.client.post(protection(lake, protected), {"protected": False}).status == 403
    assert mallory.client.delete(lake.table("orders")).status == 403
    assert mallory.client.delete(lake.table("orders", force="true")).status == 403


def test_who_may_drop_lifts_a_protection_on_record_and_does_not_get_round_it(lake: Lake, protected: Tabular) -> None:
    """Rights: modify on a protected table."""
    give(protected, Privilege.MODIFY)
    mallory = lake.as_user("mallory")
    assert mallory.client.delete(lake.table("orders")).status == 409
    assert mallory.client.delete(lake.table("orders", force="true")).status == 403
    assert mallory.client.post(lake.table("orders", "unregister")).status == 403
    assert mallory.client.post(protection(lake, protected), {"protected": False}).status == 200
    lifted = AuditEntry.objects.get(actor=MALLORY, action="setTableProtection")
    before = lifted.details["before"]
    assert (lifted.details["protected"], before["by"], before["reason"]) == (False, ADMIN, "closing of the year")


@pytest.mark.parametrize("is_protected", [True, False])
def test_an_owner_under_managed_access_makes_nothing_of_others_final(
    lake: Lake, admin: AsgiClient, warehouse: Warehouse, *, is_protected: bool
) -> None:
    """Rights: owner of a namespace with managed access, in which others own a table that is protected or restorable."""
    Warehouse.objects.filter(id=warehouse.id).update(delete_profile={"type": "soft", "expiration-seconds": 3600})
    assert lake.create_table("orders").status == 200
    table = Tabular.objects.select_related("namespace__warehouse__project").get(name="orders")
    give(table.namespace, Privilege.OWNERSHIP)
    flag = f"{API}/permissions/namespace/{table.namespace_id}/managed-access"
    assert admin.post(flag, {"managed-access": True}).status in {200, 204}
    if is_protected:
        assert admin.post(protection(lake, table), {"protected": True}).status == 200
    mallory = lake.as_user("mallory")
    assert mallory.client.delete(lake.table("orders", force="true")).status == 403
    assert mallory.client.delete(lake.namespace("sales", recursive="true", force="true")).status == 403
    assert lake.load("orders")


def test_an_owner_forces_the_end_of_all_that_is_theirs_to_grant(lake: Lake, protected: Tabular) -> None:
    """Rights: owner of a namespace, without managed access."""
    give(protected.namespace, Privilege.OWNERSHIP)
    mallory = lake.as_user("mallory")
    assert mallory.client.delete(lake.namespace("sales", recursive="true", force="true")).status == 204
