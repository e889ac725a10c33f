"""Values of the chart for tests, how they are changed, and what they render."""

from pathlib import Path
from typing import Any

import yaml

from tests.servers.helm import CHART, helm

GOOD: dict[str, Any] = {
    "config": {"kubernetes": {"enabled": True, "audience": ["lakewarden"]}},
    "secretRefs": {"database.url": {"name": "db", "key": "url"}},
}
PIPELINE = {"oauth2_server_uri": "https://id.example.org/token", "client_id": "pipeline"}


def merged(values: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    result = dict(values)
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


COMMON = sorted(CHART.glob("values/*.yaml"))


def objects(*values: Path) -> list[dict[str, Any]]:
    files = [part for each in values for part in ("-f", each)]
    return [each for each in yaml.safe_load_all(helm("template", "lw", CHART, *files)) if each]
