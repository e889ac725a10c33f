"""axe-core, which finds what people with disabilities cannot use on a page: fetched by npm, never in the repository."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from tests.servers import npm

_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass(frozen=True)
class Finding:
    rule: str
    impact: str
    where: str
    help: str


def provide() -> Path:
    """The script, installed by npm if it is not in the cache yet."""
    return npm.provide("axe-core", "axe-core/axe.min.js")


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
