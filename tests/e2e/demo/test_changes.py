"""The demo's stream of changes through a gateway and a pipeline; it compares what it reads with what it has sent."""

import subprocess
import sys

from tests.servers.lakewarden_server import start_dev


def test_changes_are_in_the_change_log_and_the_mirror_also_when_it_runs_again() -> None:
    with start_dev(arguments=["--pipeline"]) as server:
        command = [sys.executable, "-m", "demo.changes", "--ready-file", str(server.data_dir / "ready.json")]
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "The changes were durable after" in done.stdout
