"""Protect, drop and bring back in the browser: with the form's token, and with the rights that the APIs ask for."""

from html import unescape
from typing import Any

import pytest

from catalog.models import Tabular
from lakewarden.audit.models import AuditEntry
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.console.visitor import Visitor, send
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def orders(admin: AsgiClient, warehouse: Warehouse) -> dict[str, Any]:
    Warehouse.objects.filter(id=warehouse.id).update(delete_profile={"type": "soft", "expiration-seconds": 3600})
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    return created


def address(warehouse: Warehouse, orders: dict[str, Any], action: str) -> str:
    return f"/console/warehouses/{warehouse.id}/table/{orders['table-uuid']}/{action}"


def test_protect_then_lift_then_drop_then_bring_back(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    browser, page = visitor("admin"), address(warehouse, orders, "manage")
    form = address(warehouse, orders, "protection")
    assert send(browser, page, form, protected="true", reason="<i>audit</i>").status == 302
    shown = browser.get(page).body.decode()
    assert "&lt;i&gt;audit&lt;/i&gt;" in shown
    refused = send(browser, page, address(warehouse, orders, "drop"), name="orders")
    assert refused.status == 409
    assert "is protected from deletion" in unescape(refused.body.decode())
    assert send(browser, page, form, protected="false").status == 302
    assert "1 hour" in browser.get(page).body.decode()
    assert send(browser, page, address(warehouse, orders, "drop"), name="orders").status == 302
    assert not Tabular.objects.exists()
    dropped = f"/console/warehouses/{warehouse.id}/dropped"
    assert "sales.orders" in browser.get(dropped).body.decode()
    undrop = f"/console/warehouses/{warehouse.id}/undrop"
    assert send(browser, dropped, undrop, kind="table", id=orders["table-uuid"]).status == 302
    assert Tabular.objects.get().name == "orders"
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions[-4:] == ["setTableProtection", "setTableProtection", "dropTable", "undropTabulars"]


def test_a_drop_takes_the_name_and_keeps_what_was_typed(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    page = address(warehouse, orders, "manage")
    answer = send(visitor("admin"), page, address(warehouse, orders, "drop"), name="Orders")
    assert "nothing was dropped" in answer.body.decode()
    assert 'value="Orders"' in answer.body.decode()
    assert Tabular.objects.exists()


def test_who_may_only_read_is_told_which_right_it_takes(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], grant: Grant
) -> None:
    grant("bob", "describe")
    browser, page = visitor("bob"), address(warehouse, orders, "manage")
    shown = browser.get(page).body.decode()
    assert shown.count("that takes the privilege <code>modify</code>") == 2
    token_page = "/console/warehouses"
    for action, fields in (("drop", {"name": "orders"}), ("protection", {"protected": "true"})):
        answer = send(browser, token_page, address(warehouse, orders, action), **fields)
        assert answer.status == 403, action
    assert Tabular.objects.get().protection is None


def test_who_sees_nothing_can_neither_drop_nor_learn_the_name(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    browser = visitor("stranger")
    for action in ("drop", "protection"):
        answer = send(browser, "/console/warehouses", address(warehouse, orders, action), name="orders")
        assert answer.status == 404
    assert browser.get(address(warehouse, orders, "manage")).status == 404
    assert Tabular.objects.exists()


@pytest.mark.parametrize("action", ["drop", "protection"])
def test_a_form_of_another_site_changes_nothing(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], action: str
) -> None:
    answer = visitor("admin").call(
        "POST",
        address(warehouse, orders, action),
        body=b"name=orders&protected=true",
        headers={"content-type": "application/x-www-form-urlencoded", "origin": "https://evil.example"},
    )
    assert answer.status == 403
    assert Tabular.objects.get().protection is None


@pytest.mark.parametrize("kind", ["table", "view", "namespace", "nothing", ""])
def test_what_was_not_dropped_cannot_be_brought_back(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], kind: str
) -> None:
    base = f"/console/warehouses/{warehouse.id}"
    answer = send(visitor("admin"), "/console/warehouses", f"{base}/undrop", kind=kind, id=orders["table-uuid"])
    assert answer.status in {400, 404}
