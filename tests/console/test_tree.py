"""The tree of objects: opened with the keyboard and the mouse, remembered, and as plain links without scripts."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.console.furnished import Furnished
from tests.console.pages import Open
from tests.servers import axe


def item(page: Page, name: str) -> Locator:
    return page.get_by_role("treeitem", name=name, exact=True)


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.textContent.trim()"))


def test_the_keys_of_the_tree_pattern(open_page: Open, lake: Furnished) -> None:
    page = open_page("/warehouses")
    warehouse = lake.server.info.warehouse.name
    item(page, warehouse).focus()
    for key, expected in (
        ("ArrowRight", warehouse),  # opens
        ("ArrowRight", "finance"),  # the first child
        ("ArrowDown", "logistics"),
        ("s", "sales"),  # by its first letter
        ("ArrowRight", "sales"),
        ("ArrowRight", "archive"),
        ("ArrowDown", "customers"),
        ("ArrowLeft", "sales"),  # the parent
        ("ArrowLeft", "sales"),  # closes
    ):
        page.keyboard.press(key)
        expect(page.locator(".htmx-request")).to_have_count(0)
        assert focused(page) == expected, key
    # other tests leave warehouses, too
    for key, end in (("Home", page.get_by_role("treeitem").first), ("End", page.get_by_role("treeitem").last)):
        page.keyboard.press(key)
        assert focused(page) == end.inner_text().strip().partition("\n")[0], key
    item(page, "sales").focus()
    expect(item(page, "sales")).to_have_attribute("aria-expanded", "false")
    expect(item(page, "customers")).to_be_hidden()
    assert page.locator('.tree [tabindex="0"]').count() == 1, "one stop of the Tab key"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="sales", level=1)).to_be_visible()


def test_what_is_open_stays_open_and_the_way_to_the_page_is_shown(open_page: Open, lake: Furnished) -> None:
    page = open_page(f"/namespaces/{lake.namespace('sales')}")
    expect(item(page, "sales")).to_have_attribute("aria-current", "page")
    expect(item(page, "orders")).to_be_visible()
    item(page, "logistics").locator("xpath=..").locator(".toggle").click()
    expect(item(page, "vehicles")).to_be_visible()
    assert [each for each in axe.findings(page) if each.impact != "minor"] == []
    page.goto(f"{lake.console}/roles")
    expect(item(page, "vehicles")).to_have_count(0)  # below a warehouse that nobody opened
    item(page, lake.server.info.warehouse.name).press("ArrowRight")
    expect(item(page, "logistics")).to_be_visible()
    page.reload()
    expect(item(page, "vehicles")).to_be_visible()


def test_it_finds_as_one_types(open_page: Open, lake: Furnished) -> None:
    page = open_page("/users")
    page.get_by_label("Find tables and views in all warehouses").press_sequentially("vehic", delay=30)
    found = page.locator("#found").get_by_role("link", name=re.compile("vehicles table in .*logistics"))
    expect(found).to_be_visible()
    expect(page.locator(".branches")).to_be_hidden()
    found.click()
    expect(page.get_by_role("heading", name="vehicles", level=1)).to_be_visible()
    assert lake.server.info.warehouse.name in page.locator(".crumbs").inner_text()


def test_without_scripts_it_is_a_page_of_links(open_page: Open, lake: Furnished) -> None:
    page = open_page("/users", scripts=False)
    page.get_by_role("link", name="Objects").last.click()
    page.get_by_role("link", name=f"Open {lake.server.info.warehouse.name}").click()
    page.get_by_role("link", name="Open sales").click()
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
    page.get_by_role("link", name="Close sales").click()
    expect(page.get_by_role("link", name="orders", exact=True)).to_have_count(0)
    page.get_by_label(re.compile("^Find tables")).fill("orders")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=re.compile("^orders table")).click()
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()
