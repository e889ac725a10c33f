"""`lakewarden demo` and `lakewarden spark-sql`: Spark programs on top of the development stack."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from standalone.dev import INTERRUPTED, exit_code
from standalone.guardian import GUARDIAN
from standalone.options import DevOptions
from standalone.signals import interrupting
from standalone.stack import DevelopmentStack

_POLL_S = 0.2
_GRACE_S = 20.0


def run(options: DevOptions, *, exit_after: bool, result: Path | None) -> int:
    """Start the stack, run the job, stream changes through a pipeline, and serve on unless `exit_after`.

    Returns the exit code as `dev.run` does.
    """

    def serve() -> int:
        with interrupting(), DevelopmentStack(options) as stack:
            stack.start()
            command = [sys.executable, "-m", "demo", "--ready-file", str(options.ready_path)]
            if result is not None:
                command += ["--result", str(result.absolute())]
            code = _run_in_front(command, stack)
            if code == 0:
                stack.start_pipeline()
                changes = [sys.executable, "-m", "demo.changes", "--ready-file", str(options.ready_path)]
                code = _run_in_front(changes, stack)
            if code != 0 or exit_after:
                return code
            options.progress.write("\nStill serving. Ctrl-C stops everything.\n")
            options.progress.flush()
            stack.wait()
        return 0

    return exit_code(serve, interrupted=INTERRUPTED if exit_after else 0)


def shell(ready_file: Path, arguments: Sequence[str]) -> int:
    """Run Spark's SQL shell against the server that `ready_file` describes; returns its exit code."""
    try:
        json.loads(ready_file.read_bytes())
    except (OSError, ValueError):
        sys.stderr.write(
            f"Error: {ready_file} is not there: start `lakewarden dev` or `lakewarden demo` first, "
            "or name its file with --ready-file\n"
        )
        return 1
    return subprocess.run([sys.executable, "-m", "demo.shell", str(ready_file), *arguments], check=False).returncode


def _run_in_front(command: Sequence[str], stack: DevelopmentStack) -> int:
    """Run a program in this terminal; it ends with this process, or if a server of the stack ends."""
    child = subprocess.Popen(command, start_new_session=True)
    GUARDIAN.add(child.pid, signal_name="TERM")
    try:
        while (code := child.poll()) is None:
            stack.require_alive()
            time.sleep(_POLL_S)
        return code
    finally:
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        GUARDIAN.drop(child.pid)
