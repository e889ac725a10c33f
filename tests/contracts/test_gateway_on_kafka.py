"""The gateway's own tests once more, with contents in Kafka: sockets, requests, endings, the fallback file."""

import os
import re
import subprocess
import sys

import pytest

from tests.servers.postgres import VARIABLE

TESTS = [f"tests/integration/ingest/test_{name}.py" for name in ("socket", "requests", "endings", "fallback")]


@pytest.mark.timeout(900)
def test_the_gateway_does_the_same_with_contents_in_kafka() -> None:
    program = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-o", "log_level=INFO", "-rP", *TESTS]
    # with a database of its own: it would drop this run's, which has the same name
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment["LAKEWARDEN_TEST_CONTENTS"] = "kafka"
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=850)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert len(re.findall("was made in Kafka", done.stdout)) > 50
