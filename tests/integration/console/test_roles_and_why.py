"""Roles, users, acting as a role, and explanations: as much as the management API answers."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from tenants.models import Role, Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.console.visitor import Visitor, send, text_of
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def orders(admin: AsgiClient, warehouse: Warehouse) -> dict[str, Any]:
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    admin.post("/management/v1/user", {"id": "oidc~alice", "name": "Alice <b>", "user-type": "human"})
    return created


def new_role(visitor: Visitor, name: str) -> Role:
    answer = send(visitor("admin"), "/console/roles", "/console/roles/new", name=name, description="of tests")
    assert answer.status == 302
    return Role.objects.get(name=name)


def test_roles_are_created_filled_nested_and_deleted(visitor: Visitor, orders: dict[str, Any]) -> None:
    browser = visitor("admin")
    inner, outer = new_role(visitor, "analysts"), new_role(visitor, "everybody")
    page = f"/console/roles/{outer.id}"
    for member in ("oidc~alice", str(inner.principal)):
        assert send(browser, page, f"{page}/members", member=member).status == 302
    shown = browser.get(page).body.decode()
    assert "Alice &lt;b&gt;" in shown
    assert "<svg" in shown
    cycle = send(browser, f"/console/roles/{inner.id}", f"/console/roles/{inner.id}/members", member=outer.principal)
    assert cycle.status == 200
    assert 'role="alert"' in cycle.body.decode()
    odd = send(browser, page, f"{page}/members", member="somebody")
    assert "is not the id of a user" in unescape(odd.body.decode())
    assert send(browser, page, f"{page}/members", member="oidc~alice", remove="true").status == 302
    assert "nothing was deleted" in send(browser, page, f"{page}/delete", name="Everybody").body.decode()
    assert send(browser, page, f"{page}/delete", name="everybody").status == 302
    assert [each.name for each in Role.objects.all()] == ["analysts"]


def test_who_has_no_right_on_the_project_sees_no_roles(visitor: Visitor, orders: dict[str, Any], grant: Grant) -> None:
    role = new_role(visitor, "analysts")
    grant("bob", "select")
    assert visitor("stranger").get("/console/roles").status == 404
    assert visitor("stranger").get(f"/console/roles/{role.id}").status == 404
    for form in ("/console/roles/new", f"/console/roles/{role.id}/members", f"/console/roles/{role.id}/delete"):
        answer = send(visitor("bob"), "/console/warehouses", form, name="analysts", member="oidc~bob")
        assert answer.status == 403, form
        assert "Can grant it: " in text_of(answer)
        assert "oidc~bob" in answer.body.decode()
        assert send(visitor("stranger"), "/console/warehouses", form, name="analysts").status == 404
    assert Role.objects.count() == 1


def test_users_are_listed_for_administrators_only(visitor: Visitor, orders: dict[str, Any], grant: Grant) -> None:
    grant("bob", "ownership")
    shown = visitor("admin").get("/console/users?name=ali").body.decode()
    assert "oidc~alice" in shown
    assert "oidc~admin</code></td>" not in shown
    assert visitor("admin").get("/console/users?name=%00").status == 400
    assert visitor("bob").get("/console/users").status == 403
    assert visitor("stranger").get("/console/users").status == 403


def test_a_member_acts_as_a_role_and_as_themselves_again(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    browser, role = visitor("admin"), new_role(visitor, "analysts")
    page = f"/console/roles/{role.id}"
    assert "Act as this role" in browser.get(page).body.decode()
    assert send(browser, page, "/console/choice", role=str(role.id)).status == 302
    table = f"/console/warehouses/{warehouse.id}/tables/{orders['table-uuid']}"
    refused = browser.get(table)
    assert refused.status == 404
    assert "Act as yourself" in refused.body.decode()
    assert send(browser, "/console/projects", "/console/choice").status == 302
    assert browser.get(table).status == 200


@pytest.mark.parametrize("role", ["00000000-0000-4000-8000-000000000000", "analysts"])
def test_nobody_acts_as_a_role_that_is_not_theirs(visitor: Visitor, orders: dict[str, Any], role: str) -> None:
    new_role(visitor, "analysts")
    asked = str(Role.objects.get().id) if role == "analysts" else role
    answer = send(visitor("alice"), "/console/projects", "/console/choice", role=asked)
    assert answer.status in {400, 403}
    assert visitor("alice").get("/console/projects").status == 200


def test_the_matrix_names_people_and_changes_with_a_press(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    browser, page = visitor("admin"), f"/console/warehouses/{warehouse.id}/rights/table/{orders['table-uuid']}"
    assert send(browser, page, f"{page}/change", principal="oidc~alice", privilege="select").status == 302
    shown = browser.get(page).body.decode()
    assert "Alice &lt;b&gt;" in shown
    assert "Revoke select of Alice" in shown
    assert "Grant modify to Alice" in shown


def test_why_is_answered_as_a_chain(visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]) -> None:
    browser, role = visitor("admin"), new_role(visitor, "analysts")
    assert (
        send(browser, f"/console/roles/{role.id}", f"/console/roles/{role.id}/members", member="oidc~alice").status
        == 302
    )
    on_warehouse = f"/console/warehouses/{warehouse.id}/rights/warehouse/{warehouse.id}"
    send(browser, on_warehouse, f"{on_warehouse}/change", principal=role.principal, privilege="select")
    page = f"/console/warehouses/{warehouse.id}/rights/table/{orders['table-uuid']}/why"
    shown = browser.get(f"{page}?principal=oidc~alice&action=read_data").body.decode()
    text = " ".join(re.sub(r"<[^>]+>", " ", unescape(shown)).split())
    assert "oidc~alice may read_data" in text
    assert "Alice <b> member of the role analysts" not in text
    assert re.search(r"member of the role analysts granted by oidc~admin on the warehouse select", text)
    refused = browser.get(f"{page}?principal=oidc~alice&action=drop").body.decode()
    assert "not allowed" in refused
    assert "Missing:" in refused
    # about themselves everybody may ask, about others only who may read the grants
    own = visitor("alice").get(f"{page}?action=read_data").body.decode()
    assert "allowed" in own
    assert "Everybody who may" not in own
    assert "granted by" not in own
    other = visitor("alice").get(f"{page}?principal=oidc~admin&action=drop").body.decode()
    assert "requires the right to read its grants" in other
    assert visitor("stranger").get(page).status == 404
    assert browser.get(f"{page}?action=explode").status == 400
    for odd in ("role:nothing", "role:", "%00", "oidc~nobody", "x" * 400):
        assert browser.get(f"{page}?principal={odd}&action=drop").status == 200, odd


def test_an_expired_login_keeps_what_was_typed_but_for_secrets(visitor: Visitor, orders: dict[str, Any]) -> None:
    typed = {"name": "<b>analysts</b>", "credential-secret-access-key": "very-secret"}
    answer = send_expired(visitor, "/console/roles/new", typed)
    shown = answer.body.decode()
    assert answer.status == 401
    assert 'name="name" value="&lt;b&gt;analysts&lt;/b&gt;"' in shown
    assert 'action="/console/roles/new"' in shown
    assert "very-secret" not in shown
    assert "Secrets are not kept" in shown


def send_expired(visitor: Visitor, form: str, fields: dict[str, str]) -> Any:
    loaded = visitor("admin").get("/console/roles")
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', loaded.body.decode())[0]
    return AsgiClient().call(
        "POST",
        form,
        body=urlencode({"csrfmiddlewaretoken": token, **fields}).encode(),
        headers={
            "cookie": loaded.headers["set-cookie"].partition(";")[0],
            "content-type": "application/x-www-form-urlencoded",
        },
    )
