"""Rights and the audit in the browser: nobody reads, grants or revokes what the APIs would refuse."""

from html import unescape
from typing import Any

import pytest

from lakewarden.audit import refusals
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.console.visitor import Visitor, send
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def orders(admin: AsgiClient, warehouse: Warehouse) -> dict[str, Any]:
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    admin.post("/management/v1/user", {"id": "oidc~alice", "name": "Alice", "user-type": "human"})
    return created


def rights_on(warehouse: Warehouse, orders: dict[str, Any]) -> str:
    return f"/console/warehouses/{warehouse.id}/rights/table/{orders['table-uuid']}"


def test_grant_and_revoke(visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]) -> None:
    browser, page = visitor("admin"), rights_on(warehouse, orders)
    table = f"/console/warehouses/{warehouse.id}/tables/{orders['table-uuid']}"
    assert visitor("alice").get(table).status == 404
    fields = {"principal": " oidc~alice ", "privilege": "select"}
    assert send(browser, page, f"{page}/change", **fields).status == 302
    assert "oidc~alice" in browser.get(page).body.decode()
    assert visitor("alice").get(table).status == 200
    assert send(browser, page, f"{page}/change", **fields, revoke="true").status == 302
    assert visitor("alice").get(table).status == 404


def test_rights_of_warehouse_and_namespace_have_pages(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    browser = visitor("admin")
    assert browser.get(f"/console/warehouses/{warehouse.id}/rights/warehouse/{warehouse.id}").status == 200
    listed = browser.get(f"/console/warehouses/{warehouse.id}").body.decode()
    namespace = listed.partition("/console/namespaces/")[2][:36]
    assert browser.get(f"/console/warehouses/{warehouse.id}/rights/namespace/{namespace}").status == 200
    assert browser.get(f"/console/warehouses/{warehouse.id}/rights/server/{warehouse.id}").status == 400
    assert orders


def test_a_mistake_is_said_and_what_was_typed_stays(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    page = rights_on(warehouse, orders)
    answer = send(visitor("admin"), page, f"{page}/change", principal="oidc~no<b>body", privilege="modify")
    shown = answer.body.decode()
    assert "User does not exist: oidc~no<b>body" in unescape(shown)
    assert 'value="oidc~no&lt;b&gt;body"' in shown
    assert "<option selected>modify</option>" in shown


def test_who_may_only_read_data_neither_reads_nor_grants_rights(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], grant: Grant
) -> None:
    grant("bob", "select")
    browser, page = visitor("bob"), rights_on(warehouse, orders)
    assert browser.get(page).status == 403
    answer = send(browser, "/console/warehouses", f"{page}/change", principal="oidc~bob", privilege="ownership")
    assert answer.status == 403
    assert visitor("stranger").get(page).status == 404


def test_the_audit_is_for_whoever_may_read_it(visitor: Visitor, orders: dict[str, Any], grant: Grant) -> None:
    grant("bob", "ownership")
    assert orders
    refusals.flush()
    shown = visitor("admin").get("/console/audit?action=createTable").body.decode()
    assert "createTable" in shown
    assert "createNamespace" not in shown
    assert "No entry" in visitor("admin").get("/console/audit?actor=oidc~nobody").body.decode()
    assert visitor("bob").get("/console/audit").status == 403
    assert visitor("stranger").get("/console/audit").status == 404


@pytest.mark.parametrize("query", ["outcome=none", "actor=a%00b", "action=" + "a" * 256, "pageToken=x"])
def test_odd_filters_are_refused(visitor: Visitor, warehouse: Warehouse, query: str) -> None:
    assert visitor("admin").get(f"/console/audit?{query}").status == 400
    assert warehouse
