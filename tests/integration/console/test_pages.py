"""Pages and who sees what on them: as much as the APIs answer them, and never more."""

from html import unescape
from typing import Any, NoReturn

import pytest

from console.services import provider, sessions
from console.services.sessions import Tokens
from console.visits import Visit
from lakewarden.context import PrincipalId
from lakewarden.errors import Unavailable
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake, add_snapshot, set_properties
from tests.integration.console.visitor import MISSING, Visitor, links_of, send, text_of
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    made = Lake(admin, str(warehouse.id))
    assert made.create_namespace("sales", properties={"owner": "<b>data team</b>"}).status == 200
    assert made.create_namespace("sales", "europe").status == 200
    return made


@pytest.fixture
def orders(lake: Lake) -> dict[str, Any]:
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    return created


def page_of(warehouse: Warehouse, table: dict[str, Any], tab: str = "schema") -> str:
    return f"/console/warehouses/{warehouse.id}/tables/{table['table-uuid']}?tab={tab}"


def test_who_is_not_signed_in_is_sent_to_sign_in_and_back(client: AsgiClient, warehouse: Warehouse) -> None:
    answer = client.get(f"/console/warehouses/{warehouse.id}?a=b")
    assert answer.status == 302
    assert answer.headers["location"] == f"/console/sign-in?next=%2Fconsole%2Fwarehouses%2F{warehouse.id}%3Fa%3Db"


def test_a_part_of_a_page_is_not_replaced_by_the_page_of_the_provider(client: AsgiClient) -> None:
    answer = client.get("/console/warehouses", headers={"hx-request": "true"})
    assert (answer.status, answer.headers["hx-redirect"]) == (204, "/console/sign-in?next=%2Fconsole%2Fwarehouses")


def test_a_token_that_is_no_longer_confirmed_ends_the_visit(visitor: Visitor) -> None:
    assert visitor("expired").get("/console/warehouses").status == 302


def test_an_outage_of_the_provider_is_said(visitor: Visitor) -> None:
    answer = visitor("unavailable").get("/console/warehouses")
    assert answer.status == 503
    assert "The identity provider cannot be reached" in text_of(answer)


@pytest.mark.usefixtures("warehouse")
def test_a_token_that_was_renewed_is_no_change_of_the_request(
    client: AsgiClient, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert visitor("admin").get("/console/warehouses").status == 200
    monkeypatch.setattr(provider, "refreshed", lambda _: Tokens(access="admin", lifetime_s=3600))
    cookie = sessions.begin(PrincipalId("oidc~admin"), Tokens(access="admin", lifetime_s=1, refresh="refresh-1"))

    def silent(*_: object, **__: object) -> NoReturn:
        raise Unavailable("OpenFGA cannot be asked about rights: it is not reachable")

    monkeypatch.setattr(Visit, "render", silent)
    answer = client.get("/console/warehouses", headers={"cookie": f"lakewarden-session={cookie}"})
    assert answer.status == 503
    assert "This cannot be answered now" in text_of(answer)
    assert "A part of the change" not in text_of(answer)


def test_from_the_warehouse_to_the_table(
    visitor: Visitor, warehouse: Warehouse, lake: Lake, orders: dict[str, Any]
) -> None:
    lake.create_view("all_orders")
    lake.create_generic("pictures")
    browser = visitor("admin")
    answer = browser.get("/console/warehouses")
    assert "lake" in text_of(answer)
    answer = browser.get(next(link for link in links_of(answer) if link.endswith(str(warehouse.id))))
    assert "sales" in text_of(answer)
    answer = browser.get(next(link for link in links_of(answer) if link.startswith("/console/namespaces/")))
    shown = text_of(answer)
    for name in ("europe", "orders", "all_orders", "pictures", "<b>data team</b>"):
        assert name in shown
    assert "<b>data" not in answer.body.decode()
    for link in (each for each in links_of(answer) if each.startswith(f"/console/warehouses/{warehouse.id}/")):
        assert browser.get(link).status == 200, link


@pytest.mark.parametrize(
    ("tab", "expected"),
    [
        ("schema", "Partitioning"),
        ("snapshots", "1 snapshot, newest first"),
        ("properties", "purpose"),
        ("connect", "http://catalog.test/catalog"),
        ("metadata", '"format-version"'),
    ],
)
def test_each_tab_of_a_table(visitor: Visitor, lake: Lake, orders: dict[str, Any], tab: str, expected: str) -> None:
    address = f"/console/warehouses/{lake.warehouse_id}/tables/{orders['table-uuid']}"
    lake.commit("orders", set_properties(purpose="tests"), add_snapshot(7, sequence=1, location=orders["location"]))
    answer = visitor("admin").get(f"{address}?tab={tab}")
    assert answer.status == 200
    assert expected in text_of(answer)


def test_metadata_is_downloaded_byte_for_byte(
    visitor: Visitor, warehouse: Warehouse, lake: Lake, orders: dict[str, Any]
) -> None:
    answer = visitor("admin").get(page_of(warehouse, orders).replace("?tab=schema", "/metadata.json"))
    assert answer.json() == lake.load("orders")["metadata"]
    assert answer.headers["content-disposition"].startswith("attachment")


def test_two_schemas_are_compared(visitor: Visitor, warehouse: Warehouse, lake: Lake, orders: dict[str, Any]) -> None:
    schema = {**orders["schemas"][0], "schema-id": 1}
    schema["fields"] = [*schema["fields"], {"id": 99, "name": "channel", "type": "string", "required": False}]
    added = lake.commit(
        "orders",
        {"action": "add-schema", "schema": schema, "last-column-id": 99},
        {"action": "set-current-schema", "schema-id": -1},
    )
    assert added.status == 200, added.body
    shown = text_of(visitor("admin").get(page_of(warehouse, orders) + "&schema=1&against=0"))
    assert "From schema 0 to schema 1" in shown
    assert "channel: string" in shown


def test_who_has_no_right_sees_nothing_and_no_difference_to_what_is_missing(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]
) -> None:
    browser = visitor("stranger")
    shown = text_of(browser.get("/console/warehouses"))
    assert "You have no project yet" in shown
    assert "lake" not in shown.replace("Lakewarden", "")
    for path, other in (
        (f"/console/warehouses/{warehouse.id}", f"/console/warehouses/{MISSING}"),
        (page_of(warehouse, orders), page_of(warehouse, {"table-uuid": MISSING})),
    ):
        hidden, missing = browser.get(path), browser.get(other)
        assert hidden.status == missing.status == 404
        known = (str(warehouse.id), str(orders["table-uuid"]))
        texts = [text_of(hidden), text_of(missing)]
        for identifier in known:
            texts = [each.replace(identifier, MISSING) for each in texts]
        assert texts[0] == texts[1]


def test_a_right_on_one_table_shows_the_way_to_it_and_nothing_else(
    visitor: Visitor, warehouse: Warehouse, lake: Lake, orders: dict[str, Any], admin: AsgiClient
) -> None:
    lake.create_table("secret_orders")
    admin.post("/management/v1/user", {"id": "oidc~alice", "name": "Alice", "user-type": "human"})
    given = admin.post(
        f"/management/v1/warehouse/{warehouse.id}/table/{orders['table-uuid']}/grants",
        {"writes": [{"privilege": "describe", "principal": {"user": "oidc~alice"}}], "deletes": []},
    )
    assert given.status in {200, 204}, given.body
    browser = visitor("alice")
    answer = browser.get("/console/warehouses")
    answer = browser.get(next(link for link in links_of(answer) if link.endswith(str(warehouse.id))))
    answer = browser.get(next(link for link in links_of(answer) if link.startswith("/console/namespaces/")))
    assert "orders" in text_of(answer)
    assert "secret_orders" not in text_of(answer)
    assert browser.get(page_of(warehouse, orders)).status == 200


def test_a_revoked_right_is_felt_by_the_next_page(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], grant: Grant, admin: AsgiClient
) -> None:
    grant("bob", "describe")
    browser = visitor("bob")
    assert browser.get(page_of(warehouse, orders)).status == 200
    taken = admin.post(
        f"/management/v1/warehouse/{warehouse.id}/grants",
        {"writes": [], "deletes": [{"privilege": "describe", "principal": {"user": "oidc~bob"}}]},
    )
    assert taken.status in {200, 204}, taken.body
    assert browser.get(page_of(warehouse, orders)).status == 404


def test_lists_come_in_pages_and_htmx_gets_the_next_one_alone(visitor: Visitor, lake: Lake) -> None:
    for number in range(3):
        lake.create_namespace(f"team_{number}")
    browser = visitor("admin")
    whole = browser.get(f"/console/warehouses/{lake.warehouse_id}")
    assert "team_2" in text_of(whole)
    part = browser.get(f"/console/warehouses/{lake.warehouse_id}", headers={"hx-request": "true"})
    assert "<html" not in part.body.decode()
    assert "team_2" in text_of(part)


def test_search_finds_as_one_types(visitor: Visitor, lake: Lake, orders: dict[str, Any]) -> None:
    browser, path = visitor("admin"), f"/console/warehouses/{lake.warehouse_id}/search"
    assert "orders" in text_of(browser.get(f"{path}?q=ordr", headers={"hx-request": "true"}))
    nothing = text_of(browser.get(f"{path}?q=zzzz%3Cscript%3E"))
    assert "Nothing has a name like" in nothing
    assert "<script>z" not in nothing
    assert "at most 64" in text_of(browser.get(f"{path}?q={'a' * 65}"))
    assert browser.get(path).status == 200
    assert orders


@pytest.mark.parametrize("path", ["warehouses", "warehouses/{w}", "warehouses/{w}/search?q=a"])
def test_pages_have_the_strict_policy_and_are_kept_by_nobody(visitor: Visitor, warehouse: Warehouse, path: str) -> None:
    answer = visitor("admin").get("/console/" + path.format(w=warehouse.id))
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["cache-control"] == "no-store"
    page = answer.body.decode()
    for part in ("<style", "style=", "onclick", "javascript:", "//cdn"):
        assert part not in page


@pytest.mark.parametrize("path", ["sign-out", "choice"])
def test_forms_are_refused_without_their_token(visitor: Visitor, path: str) -> None:
    assert visitor("admin").post(f"/console/{path}").status == 403


@pytest.mark.parametrize("value", ["", "x" * 5000, "ä", "a; lakewarden-session=b"])
def test_a_cookie_that_is_no_session_is_ignored(client: AsgiClient, value: str) -> None:
    sent = {"cookie": f"lakewarden-session={value}".encode().decode("latin-1")}
    assert client.get("/console/warehouses", headers=sent).status == 302


@pytest.mark.parametrize(
    "query", ["tab=none", "tab=snapshots&from=-5&a=x&b=9", "tab=schema&schema=9999999999999999999"]
)
def test_odd_queries_are_answered(visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], query: str) -> None:
    path = page_of(warehouse, orders).replace("tab=schema", query)
    assert visitor("admin").get(path).status == (404 if query == "tab=none" else 200)


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "\u202eevil", "عملاء ١٢٣", "x" * 255, "a'b\"c", "{{ name }}", "%2e%2e", "名前 表"],
)
def test_odd_names_are_shown_and_led_to(visitor: Visitor, warehouse: Warehouse, lake: Lake, name: str) -> None:
    created = lake.create_table(name)
    assert created.status == 200, created.body
    browser, identifier = visitor("admin"), created.json()["metadata"]["table-uuid"]
    for page in ("", "?tab=properties", "?tab=connect"):
        answer = browser.get(f"/console/warehouses/{warehouse.id}/tables/{identifier}{page}")
        assert answer.status == 200
        assert name in unescape(answer.body.decode())
        assert "<script>alert" not in answer.body.decode()
    manage = f"/console/warehouses/{warehouse.id}/table/{identifier}"
    assert send(browser, f"{manage}/manage", f"{manage}/drop", name=name).status == 302


def test_a_table_with_as_many_columns_as_are_allowed_is_read_in_pages(
    visitor: Visitor, warehouse: Warehouse, lake: Lake
) -> None:
    fields = [{"id": number, "name": f"c{number}", "type": "int", "required": False} for number in range(1, 10_000)]
    created = lake.create_table("wide", schema={"type": "struct", "schema-id": 0, "fields": fields})
    assert created.status == 200, created.body
    page = f"/console/warehouses/{warehouse.id}/tables/{created.json()['metadata']['table-uuid']}?tab=schema"
    first = visitor("admin").get(page)
    assert text_of(first).count(" int ") == 500
    assert "9999 fields" in text_of(first)
    assert len(first.body) < 500_000
    assert "c9501" in text_of(visitor("admin").get(f"{page}&schema=0&from=9500"))


def test_the_design_has_a_page(visitor: Visitor, warehouse: Warehouse) -> None:
    shown = visitor("admin").get("/console/design").body.decode()
    assert "--accent" in shown
    assert "An empty state" in shown
