"""Whoever looks at the console sees change data arrive, wait and become rows, without loading the page again."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.change_data import send
from tests.console.furnished import Furnished
from tests.console.pages import sign_in
from tests.pipeline.flushing import DEADLINE_S, Stage
from tests.servers import chromium
from tests.servers.lakewarden_server import DevServer

TABLE = "seen_in_the_console"


@pytest.mark.timeout(900)
def test_a_flush_is_followed_in_the_console(stage: Stage, server: DevServer) -> None:
    stage.follower.stop()
    lake = Furnished(server, "")
    with chromium.start() as browser:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        sign_in(page, lake)
        page.goto(f"{lake.warehouse}/activity")
        before = page.evaluate("performance.timeOrigin")
        waits = page.get_by_text(re.compile(r"[1-9][0-9,]* events? \(.*\) in the buffer"))
        expect(waits).to_have_count(0)

        send(server, 1, 2, 3, table=f"{stage.namespace}.{TABLE}", source="console")
        expect(waits).to_be_visible(timeout=60_000)
        expect(page.get_by_role("row", name=re.compile("^console "))).to_contain_text("3")

        stage.follower.start()
        expect(page.get_by_text(re.compile(r"\b0 events \(.*\) in the buffer"))).to_be_visible(
            timeout=DEADLINE_S * 1000
        )
        expect(page.get_by_text(re.compile("last flush"))).to_be_visible()
        assert page.evaluate("performance.timeOrigin") == before, "the page was not loaded again"

        page.get_by_label(re.compile("^Find tables")).press_sequentially(TABLE)
        page.locator("#found").get_by_role("link", name=re.compile(f"^{TABLE} table")).first.click()
        page.get_by_role("link", name="Data", exact=True).click()
        expect(page.get_by_text(re.compile("^3 rows"))).to_be_visible(timeout=60_000)
