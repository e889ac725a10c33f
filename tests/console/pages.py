"""The main pages of the console, by the names that their pictures have."""

from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from playwright.sync_api import ConsoleMessage, Page

from tests.console.furnished import Furnished

Open = Callable[..., Page]
"""The type of the fixture `open_page`."""
WIDE: Final = (1280, 860)
NARROW: Final = (390, 844)


def sign_in(page: Page, lake: Furnished) -> None:
    """As the person with all rights."""
    page.goto(lake.console)
    page.get_by_role("link", name="Sign in").click()
    person = lake.server.info.person
    page.locator("input[name=username]").fill(person.username)
    page.locator("input[name=password]").fill(person.password)
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url("**/console/warehouses")


def is_complaint(message: ConsoleMessage) -> bool:
    # a page that says 403 or 404 is what was asked for
    return message.type == "error" and "the server responded with a status of 4" not in message.text


def _table(lake: Furnished, tab: str) -> str:
    return f"/warehouses/{lake.server.info.warehouse.id}/tables/{lake.orders}?tab={tab}"


def _of_table(lake: Furnished, what: str) -> str:
    return f"/warehouses/{lake.server.info.warehouse.id}/{what}"


def _restore_metadata(lake: Furnished) -> str:
    """To how the table was before its last change of the schema."""
    earlier = lake.catalog.load_table("sales.orders").metadata.metadata_log[-2].metadata_file
    return _of_table(lake, f"tables/{lake.orders}/metadata/restore?file={quote(earlier, safe='')}")


PAGES: Final[dict[str, Callable[[Furnished], str]]] = {
    "warehouses": lambda _: "/warehouses",
    "warehouse": lambda lake: f"/warehouses/{lake.server.info.warehouse.id}",
    "tree": lambda lake: f"/tree?open={lake.server.info.warehouse.id},{lake.namespace('sales')}",
    "namespace": lambda lake: f"/namespaces/{lake.namespace('sales')}",
    "table-schema": lambda lake: _table(lake, "schema&schema=1&against=0"),
    "table-data": lambda lake: _table(lake, "data"),
    "table-snapshots": lambda lake: _table(lake, "snapshots"),
    "table-properties": lambda lake: _table(lake, "properties"),
    "table-connect": lambda lake: _table(lake, "connect"),
    "table-metadata": lambda lake: _table(lake, "metadata"),
    "search": lambda lake: _of_table(lake, "search?q=orders"),
    "manage": lambda lake: _of_table(lake, f"table/{lake.orders}/manage"),
    "dropped": lambda lake: _of_table(lake, "dropped"),
    "rights": lambda lake: _of_table(lake, f"rights/warehouse/{lake.server.info.warehouse.id}"),
    "why": lambda lake: _of_table(lake, f"rights/table/{lake.orders}/why?action=write_data&principal=oidc~joao"),
    "projects": lambda _: "/projects",
    "new-warehouse": lambda _: "/new-warehouse?type=s3",
    "new-warehouse-r2": lambda _: "/new-warehouse?type=r2",
    "storage": lambda lake: _of_table(lake, "storage"),
    "manage-namespace": lambda lake: f"/namespaces/{lake.namespace('sales')}/manage",
    "restore-metadata": _restore_metadata,
    "restore": lambda lake: _of_table(lake, f"tables/{lake.orders}/restore?a={lake.first_snapshot}"),
    "tasks": lambda lake: _of_table(lake, "tasks"),
    "roles": lambda _: "/roles",
    "role": lambda lake: f"/roles/{lake.role('everybody')}",
    "users": lambda _: "/users",
    "user": lambda _: "/user?id=oidc~mira",
    "audit": lambda _: "/audit",
    "activity": lambda lake: _of_table(lake, "activity"),
    "events": lambda _: "/events",
    "status": lambda _: "/status",
    "not-found": lambda _: "/warehouses/00000000-0000-4000-8000-000000000000",
}
