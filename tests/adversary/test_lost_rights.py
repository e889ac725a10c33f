"""When an object is removed, a right on it no longer makes anything visible: at once and permanently."""

import pytest

from catalog.models import Deletion
from catalog.services.deletion import expire
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake


def change_secretly(lake: Lake) -> None:
    body = {"updates": {"secret": "the-new-plan"}}
    assert lake.client.post(lake.namespace("sales", "properties"), body).status == 200


def ensure_blind(reader: Lake) -> None:
    answer = reader.client.get(reader.namespace("sales"))
    assert b"the-new-plan" not in answer.body
    assert answer.status == 404
    assert reader.client.head(reader.namespace("sales")).status == 404


def test_the_last_grant_goes_with_the_dropped_table(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`, which is dropped while they know the namespace."""
    assert reader.client.get(reader.namespace("sales")).status == 200
    assert lake.client.delete(lake.table("orders")).status == 204
    change_secretly(lake)
    ensure_blind(reader)


def test_the_last_grant_goes_with_an_unregistered_table(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`, which is unregistered while they know the namespace."""
    assert reader.client.get(reader.namespace("sales")).status == 200
    assert lake.as_user("admin").client.post(lake.table("orders", "unregister")).status == 200
    change_secretly(lake)
    ensure_blind(reader)


@pytest.mark.parametrize("recursive", [True, False])
def test_the_last_grant_goes_with_a_namespace(lake: Lake, outsider: Lake, *, recursive: bool) -> None:
    """Rights: create on `outside`, which is dropped while they know the warehouse."""
    namespaces = outsider.path("namespaces")
    if recursive:
        assert outsider.create_table("own", within="outside").status == 200
    assert outsider.client.get(namespaces).status == 200
    flag = {"recursive": "true"} if recursive else {}
    assert lake.as_user("admin").client.delete(lake.namespace("outside", **flag)).status == 204
    assert outsider.client.get(namespaces).status == 404
    assert outsider.client.get(f"/catalog/v1/config?warehouse={outsider.warehouse_id}").status == 404


def test_the_last_grant_goes_when_a_worker_removes_what_was_dropped(
    lake: Lake, reader: Lake, warehouse: Warehouse
) -> None:
    """Rights: select on `sales.orders`, whose time to be restored ends while they know the namespace."""
    Warehouse.objects.filter(id=warehouse.id).update(delete_profile={"type": "soft", "expiration-seconds": 3600})
    assert lake.client.delete(lake.table("orders")).status == 204
    assert reader.client.get(reader.namespace("sales")).status == 200  # it can still be restored
    deletion = Deletion.objects.get()
    Deletion.objects.update(expires_at=deletion.deleted_at)
    expire.expire_deletion(str(deletion.id))
    assert not Deletion.objects.exists()
    change_secretly(lake)
    ensure_blind(reader)
