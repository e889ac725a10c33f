"""A process that changes rights may be killed at any moment: the next check agrees with the ledger."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from lakewarden.authz.ledger.models import Change
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.authz.openfga.reconcile import reconcile
from lakewarden.config import OpenFgaConfig
from tests.contracts.world import ORDERS, held

KILLS = 30
_NAME = "killed"


@contextmanager
def nursery(url: str) -> Iterator[subprocess.Popen[str]]:
    variables = {**os.environ, "LAKEWARDEN__DATABASE__URL": f"{url}?application_name={_NAME}"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.contracts.changing"],
        env=variables,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def kill_one(process: subprocess.Popen[str], url: str, *, after_s: float) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    wait_for_its_sessions(url, there=True)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    assert process.stdout.readline() == "gone\n"


def wait_for_its_sessions(url: str, *, there: bool) -> None:
    """Waits until it has one, or none: the database still executes statements that a killed client has sent."""
    asked = "select exists (select from pg_stat_activity where application_name = %s)"
    deadline = time.monotonic() + 60
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(asked, [_NAME]).fetchone() != (there,):
            assert time.monotonic() < deadline, f"sessions there: {not there}"
            time.sleep(0.01)


def test_a_kill_leaves_nothing_that_the_next_question_does_not_mend(
    openfga: OpenFgaAuthorizer, settings: OpenFgaConfig, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: Counter[str] = Counter()
    with nursery(database_url) as process:
        for _ in range(KILLS):
            kill_one(process, database_url, after_s=random.uniform(0.1, 0.35))  # noqa: S311 no secret
            wait_for_its_sessions(database_url, there=False)
            seen["with changes left behind"] += Change.objects.exists()
            held(openfga, ORDERS)
            assert not Change.objects.exists()
            found = reconcile(settings, dry_run=True)
            assert (found.missing, found.surplus) == (0, 0), found
            seen["with rights"] += found.compared > 0
    with capsys.disabled():
        print(f"\nkills: {KILLS}, {dict(seen)}")  # noqa: T201 the counts
    assert 0 < seen["with changes left behind"] < KILLS
    assert seen["with rights"] > KILLS // 2
