"""`lakewarden pipeline` as a process of its own, and changes for it."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakewarden.config import KafkaConfig
from tests.pipeline.durable_log import Event, change
from tests.pipeline.flushing import Stage

START_S = 600.0
"""For Spark to start and to write for the first time, on a machine that others use."""
OPERATIONS = ("INSERT", "UPDATE", "UPDATE", "DELETE")


def random_changes(count: int, *, seed: int) -> list[Event]:
    """Changes of a few rows, by one source, whose sequences grow."""
    chance = random.Random(seed)  # noqa: S311  not for secrets
    return [
        change(
            "t",
            f"r{chance.randrange(20)}",
            sequence,
            {"n": sequence, "text": chance.choice([None, "x"]), "nested": {"a": chance.random()}},
            operation=chance.choice(OPERATIONS),
        )
        for sequence in range(1, count + 1)
    ]


def replayed(events: list[Event]) -> Mapping[str, Any]:
    """The rows after all changes."""
    rows: dict[str, Any] = {}
    for event in events:
        if event["operation"] == "DELETE":
            rows.pop(event["rowId"], None)
        else:
            rows[event["rowId"]] = event["after"]
    return rows


@contextmanager
def pipeline(
    stage: Stage, *arguments: str, spark: str = "{}", kafka: KafkaConfig | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The command, with micro-batches of few events; killed at the end if it still runs."""
    config = stage.follower.options.config
    assert config.client_secret is not None
    settings = {
        "DATABASE__URL": stage.follower.options.dsn,
        "PIPELINE__CATALOG_URI": config.catalog_uri,
        "PIPELINE__OAUTH2_SERVER_URI": config.oauth2_server_uri,
        "PIPELINE__CLIENT_ID": config.client_id,
        "PIPELINE__CLIENT_SECRET": config.client_secret.get_secret_value(),
        "PIPELINE__MASTER": "local[2]",
        "PIPELINE__HEAP": "1g",
        "PIPELINE__FLUSH_AGE_S": "0",
        "PIPELINE__POLL_INTERVAL_S": "0.1",
        "PIPELINE__MAX_EVENTS": "100",
        "PIPELINE__LEASE_S": "20",
        "PIPELINE__DRAIN_S": "200",
        "PIPELINE__SPARK": spark,
    }
    if kafka is not None:
        settings["INGEST__KAFKA__BOOTSTRAP_SERVERS"] = ",".join(kafka.bootstrap_servers)
        settings["INGEST__KAFKA__OPTIONS"] = kafka.options.get_secret_value()
    environment = os.environ | {f"LAKEWARDEN__{name}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "lakewarden.cli", "pipeline", *arguments]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def await_flushes(stage: Stage, process: subprocess.Popen[str], *, count: int) -> None:
    """Until the flushed position has moved this often."""
    deadline, seen = time.monotonic() + START_S, {stage.log.positions()[1]}
    while len(seen) <= count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        seen.add(stage.log.positions()[1])
        time.sleep(0.02)
