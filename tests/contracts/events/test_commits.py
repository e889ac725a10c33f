"""Commits over REST reach Kafka, NATS and a webhook at once while relays are killed: `python -m benchmarks.events`.

LAKEWARDEN_TEST_EVENTS says how many commits there are; independent consumers count what arrives.
"""

import os
import subprocess
import sys

import pytest

COMMITS = os.environ.get("LAKEWARDEN_TEST_EVENTS", "1000")


@pytest.mark.timeout(1800)
def test_every_commit_is_an_event_at_all_three_sinks_in_order_for_each_table() -> None:
    program = [sys.executable, "-m", "benchmarks.events", "storm", "--commits", COMMITS]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=1700)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    for sink in ("Kafka", "NATS", "webhook"):
        assert f"| {sink} | {COMMITS} |" in done.stdout
