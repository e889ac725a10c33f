"""A page that says which right is missing says who can grant it, and names nobody whom the visitor may not know."""

from typing import Any

import pytest

from lakewarden.context import PrincipalId
from tenants.models import User, Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.console.visitor import Visitor, send, text_of
from tests.servers.asgi_client import AsgiClient

HIDDEN = ("Alice", "alice", "Olga", "olga", "oidc~admin")


@pytest.fixture
def table(admin: AsgiClient, warehouse: Warehouse, grant: Grant) -> str:
    """The page of a table: olga owns its warehouse, the role `stewards` and alice manage grants on it, bob reads."""
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    for name in ("alice", "olga"):
        body = {"id": f"oidc~{name}", "name": f"{name.title()} <b>", "user-type": "human"}
        assert admin.post("/management/v1/user", body).status < 300
    role = admin.post("/management/v1/role", {"name": "stewards"}).json()["id"]
    given = [{"principal": {"role": role}, "privilege": "manage_grants"}]
    place = f"/management/v1/warehouse/{warehouse.id}/grants"
    assert admin.post(place, {"writes": given}).status < 300
    grant("olga", "ownership")
    grant("alice", "manage_grants")
    grant("bob", "select")
    return f"/console/warehouses/{warehouse.id}/tables/{created['table-uuid']}"


def test_the_weakest_right_learns_of_roles_by_name_and_of_users_by_kind(visitor: Visitor, table: str) -> None:
    shown = text_of(visitor("bob").get(f"{table.replace('/tables/', '/table/')}/manage"))
    assert (
        "Can grant it: the role stewards , whoever owns the table or manages its grants, "
        "whoever owns the warehouse or manages its grants." in shown
    )
    assert "Tell them your id: oidc~bob" in shown
    assert [each for each in HIDDEN if each in shown] == []


def test_a_form_that_is_refused_names_them_too(visitor: Visitor, table: str) -> None:
    form = f"{table.replace('/tables/', '/table/')}/drop"
    refused = send(visitor("bob"), "/console/warehouses", form, name="orders")
    assert refused.status == 403
    shown = text_of(refused)
    assert "Can grant it: the role stewards , whoever owns the table" in shown
    assert [each for each in HIDDEN if each in shown] == []
    hidden = send(visitor("stranger"), "/console/warehouses", form, name="orders")
    assert hidden.status == 404
    assert [each for each in (*HIDDEN, "stewards", "Can grant") if each in text_of(hidden)] == []


def test_who_reads_the_grants_is_told_the_names_but_of_deleted_users(visitor: Visitor, table: str) -> None:
    page = f"{table.replace('/tables/', '/table/')}/manage"
    shown = text_of(visitor("alice").get(page))
    assert "Alice <b>" in shown
    assert "Olga <b>" in shown
    assert "the role stewards" in shown
    assert "oidc~admin" not in shown
    User.objects.filter(id=PrincipalId("oidc~olga")).update(deleted_at="2026-01-01T00:00:00Z")
    assert "Olga" not in text_of(visitor("alice").get(page))


def test_a_page_of_the_server_leads_to_its_administrators(visitor: Visitor, table: str) -> None:
    refused = visitor("bob").get("/console/users")
    assert refused.status == 403
    assert "Can grant it: an administrator of the server. Tell them your id: oidc~bob" in text_of(refused)
