"""A real Chromium, driven by Playwright: the machine's own, or the one that `CHROMIUM` names."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.servers import debian

_OTHERS = ("chromium-browser", "google-chrome", "google-chrome-stable")


def program() -> str:
    """Root gets Debian's package where there is none."""
    named = os.environ.get("CHROMIUM")
    found = named or next((path for name in _OTHERS if (path := shutil.which(name))), None)
    return found or debian.program("chromium", package="chromium")


@contextmanager
def start() -> Iterator[Browser]:
    # its sandbox needs what root and many containers do not have; the pages are our own
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
