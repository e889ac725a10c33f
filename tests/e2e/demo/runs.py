"""Runs of the job as `lakewarden demo` starts it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Ready = dict[str, Any]


@dataclass(frozen=True)
class DemoRun:
    """How a run of the job ended, what it said, and its result file's content (empty when it wrote none)."""

    code: int
    said: str
    errors: str
    result: dict[str, Any]


def run_demo(ready: Mapping[str, Any], folder: Path) -> DemoRun:
    """Runs the job as `lakewarden demo` does, against the server of a ready file's content."""
    ready_file, result_file = folder / "ready.json", folder / "result.json"
    ready_file.write_text(json.dumps(ready))
    command = [sys.executable, "-m", "demo", "--ready-file", str(ready_file), "--result", str(result_file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    result = json.loads(result_file.read_text()) if result_file.exists() else {}
    return DemoRun(done.returncode, done.stdout, done.stderr, result)
