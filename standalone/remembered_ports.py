"""The ports of the last run, which are used again, so copied addresses keep working."""

import json
from pathlib import Path


def recall(path: Path) -> dict[str, int]:
    """The ports by server name; empty if the file is missing or damaged, because they are only preferences."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        str(name): port
        for name, port in content.items()
        if isinstance(port, int) and 0 < port <= 65535  # noqa: PLR2004
    }


def remember(path: Path, *, name: str, port: int) -> None:
    path.write_text(json.dumps(recall(path) | {name: port}) + "\n", encoding="utf-8")
