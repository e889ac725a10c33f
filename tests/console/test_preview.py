"""The rows of real tables: with deletes, of earlier snapshots, and bounded."""

from tests.console.furnished import Furnished
from tests.console.pages import Open


def rows_path(lake: Furnished) -> str:
    return f"/warehouses/{lake.server.info.warehouse.id}/tables/{lake.orders}/rows"


def test_rows_of_the_current_snapshot(open_page: Open, lake: Furnished) -> None:
    page = open_page(rows_path(lake))
    cells = page.locator("tbody tr td:first-child").all_inner_texts()
    assert len(cells) == 100
    assert all(int(each) >= 20 for each in cells), "rows that were deleted are not shown"
    assert "ordered_at" in page.locator("thead").inner_text()


def test_rows_of_the_first_snapshot(open_page: Open, lake: Furnished) -> None:
    table = lake.catalog.load_table("sales.orders")
    first = table.history()[0].snapshot_id
    page = open_page(f"{rows_path(lake)}?snapshot={first}")
    cells = page.locator("tbody tr td:first-child").all_inner_texts()
    assert sorted(map(int, cells)) == list(range(50))
    assert "placed_at" in page.locator("thead").inner_text(), "a snapshot is shown with its own schema"
