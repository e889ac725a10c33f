"""The tree of objects and its search: as far as the caller may see, in pages, and never more than is asked for."""

from html import unescape

import pytest

from console.pages import tree
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.console.visitor import MISSING, Visitor, links_of, text_of
from tests.servers.asgi_client import Answer, AsgiClient

PART = {"hx-request": "true"}


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    made = Lake(admin, str(warehouse.id))
    made.create_namespace("sales")
    made.create_namespace("secret")
    made.create_table("plans", within="secret")
    for name in ("orders", "returns"):
        assert made.create_table(name).status == 200
    assert made.create_view("all_orders").status == 200
    return made


def opened(browser: AsgiClient, *ids: object) -> Answer:
    return browser.get(f"/console/tree?open={','.join(map(str, ids))}")


def namespace_of(answer: Answer) -> str:
    """The id of the first namespace that is linked."""
    return next(link for link in links_of(answer) if "/namespaces/" in link).rpartition("/")[2]


def names_of(answer: Answer) -> set[str]:
    return {"orders", "returns", "all_orders", "plans", "sales", "secret", "lake"} & set(text_of(answer).split())


def test_what_is_open_is_in_one_answer(visitor: Visitor, lake: Lake) -> None:
    browser = visitor("admin")
    assert names_of(browser.get("/console/tree")) == {"lake"}
    answer = opened(browser, lake.warehouse_id)
    assert names_of(answer) == {"lake", "sales", "secret"}
    answer = opened(browser, lake.warehouse_id, namespace_of(answer), MISSING)
    assert names_of(answer) == {"lake", "sales", "secret", "orders", "returns", "all_orders"}


def test_a_right_on_one_table_shows_the_way_to_it_and_nothing_else(
    visitor: Visitor, lake: Lake, admin: AsgiClient
) -> None:
    table = lake.load("orders")["metadata"]["table-uuid"]
    admin.post("/management/v1/user", {"id": "oidc~alice", "name": "Alice", "user-type": "human"})
    admin.post(
        f"/management/v1/warehouse/{lake.warehouse_id}/table/{table}/grants",
        {"writes": [{"privilege": "describe", "principal": {"user": "oidc~alice"}}]},
    )
    browser, part = visitor("alice"), f"/console/tree/warehouses/{lake.warehouse_id}"
    seen = browser.get(part, headers=PART)
    assert names_of(seen) == {"sales"}
    assert names_of(opened(browser, lake.warehouse_id, namespace_of(seen))) == {"lake", "sales", "orders"}
    found = browser.get("/console/search?q=orders", headers=PART)
    assert text_of(found).split() == ["orders", "table", "in", "lake", "/", "sales"]
    assert "Nothing has a name like" in text_of(browser.get("/console/search?q=plans"))
    nobody = visitor("stranger")
    assert names_of(opened(nobody, lake.warehouse_id)) == set()
    assert nobody.get(part, headers=PART).status == 404


def test_branches_come_in_pages(visitor: Visitor, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "PAGE_SIZE", 1)
    browser = visitor("admin")
    first = browser.get(f"/console/tree/warehouses/{lake.warehouse_id}", headers=PART)
    assert names_of(first) == {"sales"}
    more = unescape(first.body.decode().rpartition('hx-get="')[2].partition('"')[0])
    assert names_of(browser.get(more, headers=PART)) == {"secret"}
    below = browser.get(f"/console/tree/namespaces/{namespace_of(first)}", headers=PART)
    assert names_of(below) == {"orders", "all_orders"}
    more = unescape(below.body.decode().partition('more" href')[2].partition('hx-get="')[2].partition('"')[0])
    assert names_of(browser.get(more, headers=PART)) == {"returns"}


def test_an_inactive_warehouse_has_no_branches(visitor: Visitor, lake: Lake, admin: AsgiClient) -> None:
    assert admin.post(f"/management/v1/warehouse/{lake.warehouse_id}/deactivate").status == 200
    answer = opened(visitor("admin"), lake.warehouse_id)
    assert names_of(answer) == {"lake"}
    assert "Open lake" not in text_of(answer)


def test_only_so_many_branches_are_opened_at_once(visitor: Visitor, lake: Lake, grant: Grant) -> None:
    grant("bob", "describe")
    too_many = [MISSING] * tree.MOST_OPEN
    assert names_of(opened(visitor("bob"), lake.warehouse_id, *too_many)) == {"lake"}


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "\u202eevil", "عملاء ١٢٣", "x" * 255, "{{ name }}", "%2e%2e"]
)
def test_odd_names_are_shown_as_they_are(visitor: Visitor, lake: Lake, name: str) -> None:
    assert lake.create_namespace(name).status == 200
    assert lake.create_table(name, within=name).status == 200
    browser = visitor("admin")
    ids = [link.rpartition("/")[2] for link in links_of(opened(browser, lake.warehouse_id)) if "/namespaces/" in link]
    shown = opened(browser, lake.warehouse_id, *ids).body.decode()
    assert unescape(shown).count(f"<bdi>{name}</bdi>") == 2
    assert "<script>alert" not in shown


@pytest.mark.parametrize("query", ["open=x", "open=%00", "pageToken=x"])
def test_odd_queries_are_refused(visitor: Visitor, lake: Lake, query: str) -> None:
    assert lake
    assert visitor("admin").get(f"/console/tree?{query}").status == 400
