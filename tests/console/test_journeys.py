"""What administrators do, from page to page. `test_keyboard` does it without a mouse."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.console.furnished import Furnished
from tests.console.pages import Open


def test_a_warehouse_is_checked_live_and_created(open_page: Open, lake: Furnished) -> None:
    page = open_page("/warehouses")
    page.get_by_role("link", name="New warehouse").click()
    page.get_by_role("link", name="Directory").click()
    page.get_by_label("Name").fill("second <lake>")
    page.get_by_label("Path").fill(
        str(Path(lake.server.info.warehouse.location.removeprefix("file://")).parent / "second")
    )
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="All checks passed")).to_be_visible()
    assert page.get_by_label("Name").input_value() == "second <lake>", "what was typed stays"
    page.get_by_role("button", name="Create the warehouse").click()
    expect(page.get_by_role("heading", name="second <lake>")).to_be_visible()
    expect(page.get_by_text("This warehouse is empty")).to_be_visible()


def test_find_preview_restore_and_go_forward_again(open_page: Open, lake: Furnished) -> None:
    page = open_page(f"/warehouses/{lake.server.info.warehouse.id}")
    page.get_by_label(re.compile("Find tables")).press_sequentially("orders", delay=30)
    page.locator("#found").get_by_role("link", name=re.compile("^orders table")).click()
    page.get_by_role("link", name="Data", exact=True).click()
    # a process of its own reads them, within `console.preview_s`
    expect(page.get_by_text("100 rows, in no particular order")).to_be_visible(timeout=30_000)
    page.get_by_role("link", name="Snapshots").click()
    page.get_by_label(f"first: snapshot {lake.first_snapshot}").check()
    page.get_by_role("button", name="Restore the first").click()
    expect(page.get_by_text("would no longer be visible to readers")).to_be_visible()
    newest = page.locator("tbody tr").first.locator("td").first.inner_text()
    page.get_by_role("button", name="Restore the table").click()
    expect(page.get_by_role("heading", name=re.compile("snapshots, newest first"))).to_be_visible()
    assert lake.catalog.load_table("sales.orders").scan().to_arrow().num_rows == 50
    page.get_by_label(f"first: snapshot {newest}").check()
    page.get_by_role("button", name="Restore the first").click()
    page.get_by_role("button", name="Restore the table").click()
    expect(page.get_by_role("heading", name=re.compile("snapshots, newest first"))).to_be_visible()
    current = lake.catalog.load_table("sales.orders").current_snapshot()
    assert current is not None
    assert str(current.snapshot_id) == newest


def test_grant_and_revoke_with_a_press(open_page: Open, lake: Furnished) -> None:
    page = open_page(f"/warehouses/{lake.server.info.warehouse.id}/rights/table/{lake.orders}")
    page.get_by_label("User or role").fill("oidc~mira")
    page.get_by_label("may").select_option("select")
    page.get_by_role("button", name="Grant", exact=True).click()
    page.get_by_role("button", name="Grant modify to Mira Koch").click()
    page.get_by_role("button", name="Revoke modify of Mira Koch").click()
    expect(page.get_by_role("button", name="Grant modify to Mira Koch")).to_be_visible()
    page.get_by_role("button", name="Revoke select of Mira Koch").click()
    expect(page.get_by_text("Mira Koch")).to_have_count(0)
