"""A real Chromium, driven by Playwright: the machine's own, or the one that `CHROMIUM` names."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.servers import debian

_OTHERS = ("chromium-browser", "google-chrome", "google-chrome-stable")


def program() -> str:
    """Root gets Debian's package where there is none."""
    named = os.environ.get("CHROMIUM")
    found = named or next((path for name in _OTHERS if (path := shutil.which(name))), None)
    return found or debian.program("chromium", package="chromium")


@contextmanager
def start(*, enter: Sequence[str] = ()) -> Iterator[Browser]:
    """`enter` is what a command begins with that runs in another network."""
    with tempfile.TemporaryDirectory(prefix="lw-chromium-") as directory:
        entered = Path(directory, "chromium")
        entered.write_text(f'#!/bin/sh\nexec {shlex.join([*enter, program()])} "$@"\n')
        entered.chmod(0o700)
        # its sandbox needs what root and many containers do not have; the pages are our own
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=entered, args=["--no-sandbox", "--disable-gpu"])
            try:
                yield browser
            finally:
                browser.close()
