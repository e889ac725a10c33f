"""Each main page in a real browser, light and dark, wide and narrow: no error of the browser, nothing inaccessible.

`LAKEWARDEN_TEST_PICTURES` names a folder for pictures of them; `make pictures` makes those of the documents.
"""

import base64
import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.console.furnished import Furnished
from tests.console.pages import NARROW, PAGES, WIDE, Open
from tests.servers import axe

SERIOUS = {"serious", "critical", "moderate"}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_page(open_page: Open, lake: Furnished, name: str, scheme: str, size: tuple[int, int]) -> None:
    page = open_page(PAGES[name](lake), scheme=scheme, size=size)
    if page.locator(".branches").is_visible():
        page.locator(".tree .leaf").first.wait_for()
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    keep_picture(page, f"{name}-{'wide' if size == WIDE else 'narrow'}-{scheme}")
    assert overflow <= 0, "the page is wider than the window"
    assert [each for each in axe.findings(page) if each.impact in SERIOUS] == []


@pytest.mark.parametrize("name", PAGES)
def test_page_can_be_read_without_scripts(open_page: Open, lake: Furnished, name: str) -> None:
    page = open_page(PAGES[name](lake), scripts=False)
    assert page.locator("main h1").inner_text()


def keep_picture(page: Page, name: str) -> None:
    folder = os.environ.get("LAKEWARDEN_TEST_PICTURES")
    if folder:
        page.locator("[hx-trigger=load] > .panel").wait_for(state="detached")  # what is loaded after the page
        # WebP is a third of PNG, and Playwright itself does not write it
        session = page.context.new_cdp_session(page)
        shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
        Path(folder, f"{name}.webp").write_bytes(base64.b64decode(shot["data"]))
