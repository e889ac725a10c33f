"""Pages that keep themselves up to date in a real browser, under the console's strict policy for scripts."""

import re
import time

from playwright.sync_api import Browser, Page, expect

from tests.console.change_data import send
from tests.console.furnished import TIMEOUT_S, Furnished
from tests.console.pages import Open, sign_in

KEPT = "Kept up to date"
HIDE = """is => {
  Object.defineProperty(document, "hidden", {value: is, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def readers(lake: Furnished) -> int:
    answer = lake.administrator.get(f"{lake.server.info.management_uri}/v1/server/metrics", timeout=TIMEOUT_S)
    (found,) = re.findall(r"^lakewarden_event_readers (\d+)", answer.text, re.MULTILINE)
    return int(found)


def until_readers(lake: Furnished, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while readers(lake) != count:
        assert time.monotonic() < deadline, readers(lake)
        time.sleep(0.1)


def kept_up_to_date(page: Page) -> None:
    expect(page.get_by_role("status")).to_have_text(KEPT)
    expect(page.get_by_role("link", name="Load again")).to_be_hidden()


def test_the_buffers_of_change_data_are_followed_while_somebody_looks(open_page: Open, lake: Furnished) -> None:
    send(lake.server, 1)
    page = open_page(f"/warehouses/{lake.server.info.warehouse.id}/activity")
    kept_up_to_date(page)
    before = page.evaluate("performance.timeOrigin")
    row = page.get_by_role("row", name=re.compile("tills"))
    expect(row).to_contain_text("1")
    page.get_by_role("region", name="Sources").focus()
    send(lake.server, *range(2, 5))
    expect(page.get_by_text("4 received in all")).to_be_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Sources", "the focus stays"
    assert page.evaluate("performance.timeOrigin") == before, "the page was not loaded again"
    until_readers(lake, 1)
    page.evaluate(HIDE, True)
    until_readers(lake, 0)
    send(lake.server, 5)
    page.evaluate(HIDE, False)
    expect(page.get_by_text("5 received in all")).to_be_visible()
    kept_up_to_date(page)
    page.goto("about:blank")
    until_readers(lake, 0)


def test_whoever_signed_out_elsewhere_is_told_and_shown_nothing_more(browser: Browser, lake: Furnished) -> None:
    context = browser.new_context()
    first, second = context.new_page(), context.new_page()
    sign_in(first, lake)
    first.goto(f"{lake.console}/events")
    kept_up_to_date(first)
    second.goto(f"{lake.console}/warehouses")
    second.locator("details.menu summary").click()
    second.get_by_role("button", name="Sign out").click()
    expect(first.get_by_role("status")).to_have_text("No longer kept up to date.")
    expect(first.get_by_role("link", name="Load again")).to_be_visible()
    until_readers(lake, 0)
    context.close()


def test_without_scripts_a_link_loads_the_page_again(open_page: Open, lake: Furnished) -> None:
    page = open_page("/events", scripts=False)
    page.get_by_role("link", name="Load again").click()
    page.wait_for_url("**/console/events")
    expect(page.get_by_role("heading", name="Events", exact=True)).to_be_visible()
