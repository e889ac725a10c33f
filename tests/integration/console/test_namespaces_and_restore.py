"""Namespaces are protected and dropped, tables restored, tasks controlled: with the rights that the APIs ask for."""

import re
from html import unescape
from typing import Any

import pytest

from catalog.models import Namespace, Tabular
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake, add_snapshot
from tests.integration.console.visitor import Visitor, send
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    Warehouse.objects.filter(id=warehouse.id).update(delete_profile={"type": "soft", "expiration-seconds": 3600})
    made = Lake(admin, str(warehouse.id))
    assert made.create_namespace("sales").status == 200
    assert made.create_namespace("sales", "europe").status == 200
    return made


@pytest.fixture
def orders(lake: Lake) -> dict[str, Any]:
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    for number in (1, 2):
        assert lake.commit("orders", add_snapshot(number, sequence=number, location=created["location"])).status == 200
    assert lake.commit("orders", set_main(2)).status == 200
    return created


def set_main(snapshot_id: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}


def of_sales(action: str) -> str:
    return f"/console/namespaces/{Namespace.objects.get(path=['sales']).id}/{action}"


def test_a_namespace_is_protected_then_dropped_with_what_is_in_it(visitor: Visitor, orders: dict[str, Any]) -> None:
    browser = visitor("admin")
    page, form = of_sales("manage"), of_sales("protection")
    shown = browser.get(page).body.decode()
    assert "1 table" in shown
    assert "1 namespace" in shown
    assert send(browser, page, form, protected="true", reason="audit").status == 302
    assert "lift the protection first" in browser.get(page).body.decode()
    assert send(browser, page, form, protected="false").status == 302
    assert "nothing was dropped" in send(browser, page, of_sales("drop"), name="Sales").body.decode()
    assert "is not empty" in send(browser, page, of_sales("drop"), name="sales").body.decode()
    assert Tabular.objects.exists()
    assert send(browser, page, of_sales("drop"), name="sales", recursive="true").status == 302
    assert not Namespace.objects.exists()


def test_the_second_of_two_administrators_is_told_what_changed(visitor: Visitor, orders: dict[str, Any]) -> None:
    first, second, page, form = visitor("admin"), visitor("admin"), of_sales("manage"), of_sales("protection")
    seen = unescape(re.findall(r'name="seen" value="([^"]+)"', second.get(page).body.decode())[0])
    assert send(first, page, form, protected="true", reason="audit").status == 302
    told = send(second, page, form, protected="true", reason="mine", seen=seen)
    assert "It was protected by oidc~admin after you opened this page" in told.body.decode()
    assert Namespace.objects.get(path=["sales"]).protection["reason"] == "audit"  # type: ignore[index]


def test_what_is_protected_inside_is_named(visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]) -> None:
    browser = visitor("admin")
    table = f"/console/warehouses/{warehouse.id}/table/{orders['table-uuid']}"
    assert send(browser, f"{table}/manage", f"{table}/protection", protected="true").status == 302
    shown = browser.get(of_sales("manage")).body.decode()
    assert "Protected in it" in shown
    assert "sales.orders" in shown


def test_a_table_is_restored_after_a_look(
    visitor: Visitor, warehouse: Warehouse, lake: Lake, orders: dict[str, Any]
) -> None:
    browser, base = visitor("admin"), f"/console/warehouses/{warehouse.id}/tables/{orders['table-uuid']}/restore"
    before = lake.load("orders")["metadata"]["current-snapshot-id"]
    page = f"{base}?a=1"
    assert "Restore the table to this snapshot" in browser.get(page).body.decode()
    assert lake.load("orders")["metadata"]["current-snapshot-id"] == before == 2
    stale = send(browser, page, f"{base}/now", snapshot="1", seen="1")
    assert "was changed after you opened this page" in stale.body.decode()
    assert send(browser, page, f"{base}/now", snapshot="1", seen="2").status == 302
    assert lake.load("orders")["metadata"]["current-snapshot-id"] == 1
    assert "This is the current snapshot" in browser.get(page).body.decode()
    assert "Choose a snapshot" in browser.get(f"{base}?a=77").body.decode()


def test_who_may_only_read_neither_restores_nor_drops(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], grant: Grant
) -> None:
    grant("bob", "select")
    browser, base = visitor("bob"), f"/console/warehouses/{warehouse.id}/tables/{orders['table-uuid']}/restore"
    assert "takes the privilege <code>write</code>" in browser.get(f"{base}?a=1").body.decode()
    assert "that takes the privilege <code>modify</code>" in browser.get(of_sales("manage")).body.decode()
    start = "/console/warehouses"
    for form in (f"{base}/now", of_sales("drop"), of_sales("protection")):
        assert send(browser, start, form, snapshot="1", seen="2", name="sales").status == 403
        assert send(visitor("stranger"), start, form, snapshot="1", seen="2", name="sales").status == 404
    assert Namespace.objects.get(path=["sales"]).protection is None


def test_the_task_of_a_drop_is_seen_and_cancelled(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], grant: Grant
) -> None:
    browser, table = visitor("admin"), f"/console/warehouses/{warehouse.id}/table/{orders['table-uuid']}"
    assert send(browser, f"{table}/manage", f"{table}/drop", name="orders").status == 302
    listed = f"/console/warehouses/{warehouse.id}/tasks"
    (address,) = set(re.findall(rf'href="({listed}/[0-9a-f-]+)"', browser.get(listed).body.decode()))
    page = browser.get(address).body.decode()
    assert "scheduled" in page
    assert "orders" in page
    grant("bob", "describe")
    assert send(visitor("bob"), "/console/warehouses", f"{address}/control", verb="cancel").status == 403
    assert send(visitor("stranger"), "/console/warehouses", f"{address}/control", verb="cancel").status == 404
    assert send(browser, address, f"{address}/control", verb="explode").status == 400
    assert send(browser, address, f"{address}/control", verb="cancel").status == 302
    assert "cancelled" in browser.get(address).body.decode()
    assert Tabular.objects.get().name == "orders"
    again = send(browser, address, f"{address}/control", verb="run-now")
    assert "has ended" in again.body.decode()
