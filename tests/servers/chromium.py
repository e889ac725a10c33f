"""A real Chromium, driven by Playwright: the machine's own, or the one that `CHROMIUM` names."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class NoChromium(AssertionError):
    """There is none on this machine; the message says what to do."""


def program() -> str:
    named = os.environ.get("CHROMIUM")
    found = named or next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise NoChromium("There is no Chromium on the PATH: install Debian's package `chromium`, or set CHROMIUM.")
    return found


@contextmanager
def start() -> Iterator[Browser]:
    # its sandbox needs what root and many containers do not have; the pages are our own
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
