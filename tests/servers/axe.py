"""axe-core, which finds what people with disabilities cannot use on a page: fetched by npm, never in the repository."""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from lakewarden.cache_folder import cache_folder
from standalone import staging

_PINS: Final = Path(__file__).parents[2] / "tools" / "axe-core"
_SCRIPT: Final = Path("node_modules/axe-core/axe.min.js")
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_INSTALL_TIMEOUT_S: Final = 300


class AxeFailed(AssertionError):
    """It cannot be had; the message says why."""


@dataclass(frozen=True)
class Finding:
    rule: str
    impact: str
    where: str
    help: str


def provide() -> Path:
    """The script, installed by npm if it is not in the cache yet."""
    digest = hashlib.sha256((_PINS / "package-lock.json").read_bytes()).hexdigest()[:16]
    target = cache_folder() / "axe-core" / digest
    if (target / _SCRIPT).is_file():
        return target / _SCRIPT
    npm = shutil.which("npm")
    if npm is None:
        raise AxeFailed("axe-core must be fetched, but there is no `npm` on the PATH: install Node.js 20 or later.")
    with staging.locked(target.parent) as folder:
        if not target.is_dir():
            place = folder / digest
            shutil.copytree(_PINS, place)
            done = subprocess.run(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                cwd=place,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=_INSTALL_TIMEOUT_S,
            )
            if done.returncode != 0:
                raise AxeFailed(f"`npm ci` ended with {done.returncode}:\n{done.stdout[-2000:]}")
            place.rename(target)
    return target / _SCRIPT


def findings(page: Page) -> list[Finding]:
    """What is wrong with the page as it is shown now."""
    # evaluated by the browser's debugger: the pages' Content-Security-Policy allows no such script in them
    page.evaluate(provide().read_text(encoding="utf-8"))
    options = {"runOnly": {"type": "tag", "values": _RULES}, "resultTypes": ["violations"]}
    found: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    return [
        Finding(each["id"], each["impact"] or "minor", str(node["target"]), f"{each['help']}: {node['html'][:200]}")
        for each in found["violations"]
        for node in each["nodes"]
    ]
