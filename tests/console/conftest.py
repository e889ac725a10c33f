"""One server with data, one browser, and one person who has signed in at the provider, for the whole lane."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState

from tests.console.furnished import Furnished, furnish
from tests.console.pages import WIDE, Open, is_complaint, sign_in
from tests.servers import chromium
from tests.servers.lakewarden_server import start_dev


@pytest.fixture(scope="session")
def lake() -> Iterator[Furnished]:
    with start_dev() as server:
        yield furnish(server)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium.start() as running:
        yield running


@pytest.fixture(scope="session")
def signed_in(browser: Browser, lake: Furnished) -> StorageState:
    """The cookies of the person with all rights."""
    context = browser.new_context()
    sign_in(context.new_page(), lake)
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def open_page(browser: Browser, lake: Furnished, signed_in: StorageState) -> Iterator[Open]:
    """`open_page("/warehouses")` is a tab with that page of the console; the test fails if the browser complains."""
    contexts, complaints = [], []

    def opened(path: str, *, scheme: str = "light", size: tuple[int, int] = WIDE, scripts: bool = True) -> Page:
        context = browser.new_context(
            storage_state=signed_in,
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": size[0], "height": size[1]},
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
        page.goto(lake.console + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
