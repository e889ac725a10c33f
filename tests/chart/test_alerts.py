"""The alert rules: each measures what the product exposes, and has a chapter in the runbooks; the dashboard likewise."""

import json
import re
from pathlib import Path

import yaml

from tests.servers.helm import CHART, ROOT

RULES = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"][0]["rules"]
METRIC = re.compile(r"\blakewarden_[a-z_]+")


def exposed() -> set[str]:
    """The names of metrics in the code, with the suffixes that Prometheus adds."""
    code = "\n".join(path.read_text() for folder in ("platform", "ingest") for path in (ROOT / folder).rglob("*.py"))
    names = set(re.findall(r'"(lakewarden_[a-z_]+)"', code))
    names |= {f"lakewarden_event_sink_{each}" for each in re.findall(r'_gauge\("(\w+)"', code)}
    names |= {f"lakewarden_ingest_{each}" for each in re.findall(r'\("(waiting_\w+|pipeline_\w+)"', code)}
    return names | {f"{each}{suffix}" for each in names for suffix in ("_bucket", "_count", "_sum", "_total")}


def test_every_rule_and_panel_measures_what_is_exposed() -> None:
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    queries = [rule["expr"] for rule in RULES]
    queries += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert {name for query in queries for name in METRIC.findall(query)} <= exposed()


def test_every_alert_has_a_runbook() -> None:
    chapters = re.findall(r"^## (\w+)", Path(ROOT / "docs" / "how-to" / "runbooks.md").read_text(), re.MULTILINE)
    assert [rule["alert"] for rule in RULES] == chapters
    for rule in RULES:
        assert rule["annotations"]["runbook_url"] == f"RUNBOOKS#{rule['alert'].lower()}"
