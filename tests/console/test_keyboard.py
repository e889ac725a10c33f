"""What administrators do, with the keyboard alone: the focus is always seen, in order, and comes back."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.console.furnished import Furnished
from tests.console.pages import WIDE, is_complaint

MOST_STEPS = 120
TABLE = "sales.parcels"
# what somebody without a mouse needs of the element that has the focus; remembers it, to compare the order
FOCUS = """backwards => {
  const now = document.activeElement, before = window.lastFocus, wrong = [];
  window.lastFocus = now;
  if (!now || now === document.body) return {wrong: [], at: null};
  const box = now.getBoundingClientRect(), style = getComputedStyle(now);
  if (!now.matches(":focus-visible")) wrong.push("is not :focus-visible");
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) wrong.push("has no outline");
  if (box.width < 1 || box.height < 1) wrong.push("has no size");
  if (box.bottom <= 0 || box.right <= 0 || box.top >= innerHeight || box.left >= innerWidth)
    wrong.push("is outside of the window");
  if (before?.isConnected && before !== document.body && before !== now) {
    const wanted = backwards ? Node.DOCUMENT_POSITION_PRECEDING : Node.DOCUMENT_POSITION_FOLLOWING;
    if (!(before.compareDocumentPosition(now) & wanted)) wrong.push("is out of order");
  }
  return {wrong, at: now.outerHTML.slice(0, 200)};
}"""
TEXT = "document.activeElement.textContent.trim()"
NAME = "document.activeElement.id"


@pytest.fixture
def page(browser: Browser, lake: Furnished) -> Iterator[Page]:
    """A tab of nobody: the test fails if the browser complains."""
    context = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]}, reduced_motion="reduce")
    found, complaints = context.new_page(), list[str]()
    found.set_default_timeout(30_000)
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
    yield found
    context.close()
    assert complaints == []


def go_to(page: Page, wanted: str, *, by: str = TEXT, key: str = "Tab") -> None:
    """Press Tab until the element has the focus; each on the way is seen, and comes after the one before."""
    for _ in range(MOST_STEPS):
        page.keyboard.press(key)
        told = page.evaluate(FOCUS, key != "Tab")
        assert told["wrong"] == [], told
        if page.evaluate(by) == wanted:
            return
    raise AssertionError(f"{wanted} is not reached by {MOST_STEPS} presses of {key} on {page.url}")


def press(page: Page, wanted: str) -> None:
    go_to(page, wanted)
    page.keyboard.press("Enter")


def type_in(page: Page, field: str, text: str) -> None:
    go_to(page, field, by=NAME)
    page.keyboard.type(text)


def heading(page: Page, name: str | re.Pattern[str]) -> None:
    expect(page.get_by_role("heading", name=name).first).to_be_visible(timeout=15_000)


def snapshot_of(lake: Furnished) -> str:
    found = lake.catalog.load_table(TABLE).current_snapshot()
    assert found is not None
    return str(found.snapshot_id)


def test_sign_in_and_create_a_warehouse(page: Page, lake: Furnished) -> None:
    page.goto(lake.console)
    go_to(page, "Skip to the content")
    sign_in(page, lake)
    press(page, "New warehouse")
    page.wait_for_url("**/new-warehouse")
    heading(page, "New warehouse")
    press(page, "Directory")
    page.wait_for_url("**type=local")
    place = Path(lake.server.info.warehouse.location.removeprefix("file://")).parent / "by-keyboard"
    type_in(page, "warehouse-name", "by keyboard")
    label = page.get_by_label("Path").get_attribute("id")
    assert label is not None
    type_in(page, label, str(place))
    go_to(page, "Check")
    page.keyboard.press("Enter")
    heading(page, "All checks passed")
    assert page.evaluate(TEXT) == "Check", "the focus stays where it was"
    press(page, "Create the warehouse")
    heading(page, "by keyboard")


def test_find_preview_grant_protect_drop_undrop_and_restore(page: Page, lake: Furnished) -> None:
    table = lake.catalog.create_table(TABLE, Schema(NestedField(1, "id", LongType())))
    for count in (2, 3):
        table.append(pa.table({"id": pa.array(range(count), pa.int64())}))
    first, newest = (str(each.snapshot_id) for each in table.history())
    page.goto(lake.console)
    sign_in(page, lake)
    find_and_preview(page)
    grant(page)
    protect_drop_and_bring_back(page, lake)
    restore(page, lake, first, newest)


def find_and_preview(page: Page) -> None:
    type_in(page, "find", "parcels")
    expect(page.locator("#found").get_by_role("link", name=re.compile("^parcels"))).to_be_visible()
    go_to(page, "parcels", by="document.activeElement.querySelector('bdi')?.textContent")
    page.keyboard.press("Enter")
    heading(page, "parcels")
    press(page, "Data")
    # a process of its own reads them
    expect(page.get_by_text(re.compile("^5 rows"))).to_be_visible(timeout=30_000)


def grant(page: Page) -> None:
    press(page, "Manage")
    heading(page, "Manage parcels")
    before = page.url
    press(page, "Rights")
    heading(page, re.compile("^Rights on"))
    type_in(page, "principal", "oidc~mira")
    go_to(page, "privilege", by=NAME)
    page.keyboard.type("select")
    press(page, "Grant")
    expect(page.get_by_role("button", name="Revoke select of Mira Koch")).to_be_visible()
    page.goto(before)


def protect_drop_and_bring_back(page: Page, lake: Furnished) -> None:
    press(page, "Protect")
    expect(page.get_by_text("Nobody can drop this table")).to_be_visible()
    press(page, "Lift the protection")
    expect(page.get_by_text("Whoever may modify this table")).to_be_visible()
    type_in(page, "name", "Parcels")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    go_to(page, "name", by=NAME)
    page.keyboard.press("Control+A")
    page.keyboard.type("parcels")
    page.keyboard.press("Enter")
    page.wait_for_url("**/namespaces/**")
    press(page, lake.server.info.warehouse.name)
    heading(page, lake.server.info.warehouse.name)
    press(page, "What was dropped")
    heading(page, re.compile("^Dropped in"))
    row = page.get_by_role("row", name=re.compile(re.escape(TABLE)))
    expect(row).to_be_visible()
    press(page, "Bring back")  # the most recently dropped comes first
    expect(row).to_have_count(0)


def restore(page: Page, lake: Furnished, first: str, newest: str) -> None:
    page.goto(f"{lake.warehouse}/tables/{lake.catalog.load_table(TABLE).metadata.table_uuid}?tab=snapshots")
    go_to(page, "a", by="document.activeElement.name")
    while page.evaluate("document.activeElement.value") != first:
        page.keyboard.press("ArrowDown")
        assert page.evaluate(FOCUS, False)["wrong"] == []
    go_to(page, "Restore the first…", key="Shift+Tab")
    page.keyboard.press("Enter")
    heading(page, "Restore parcels")
    press(page, "Restore the table to this snapshot")
    heading(page, re.compile("snapshots, newest first"))
    assert snapshot_of(lake) == first

    press(page, "Metadata")
    heading(page, "Earlier metadata files")
    go_to(page, "Restore…", by="document.activeElement.textContent.trim().split(' ')[0]")
    page.keyboard.press("Enter")
    heading(page, "Restore parcels")
    type_in(page, "name", "parcels")
    press(page, "Restore the table to this file")
    heading(page, "Earlier metadata files")
    assert snapshot_of(lake) == newest


def test_the_menu_opens_closes_and_gives_the_focus_back(page: Page, lake: Furnished) -> None:
    page.goto(lake.console)
    sign_in(page, lake)
    go_to(page, "SUMMARY", by="document.activeElement.tagName")
    page.keyboard.press("Enter")
    out = page.get_by_role("button", name="Sign out")
    expect(out).to_be_visible()
    go_to(page, "Sign out")
    page.keyboard.press("Escape")
    expect(out).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    go_to(page, "Warehouses")
    expect(out).to_be_hidden()  # it closes when the focus leaves it
    page.goto(lake.console + "/warehouses")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def sign_in(page: Page, lake: Furnished) -> None:
    press(page, "Sign in")
    expect(page.locator("#username")).to_be_focused()
    page.keyboard.type(lake.server.info.person.username)
    page.keyboard.press("Tab")
    page.keyboard.type(lake.server.info.person.password)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/warehouses")
