"""A server as a process: a request leaves its decision soon, and no change that was answered is lost by kill -9."""

import itertools
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import requests

from lakewarden.config import PREFIX
from standalone.commands import AUDIENCE
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

CALLERS = 4
SOON_S = 60


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    with run_issuer(tmp_path_factory.mktemp("audit") / "state") as running:
        yield running


@pytest.fixture(scope="module")
def installed(issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    """With the issuer's administrator as its own."""
    settings = {f"{PREFIX}OPENID__OIDC__ISSUER": issuer.url, f"{PREFIX}OPENID__OIDC__AUDIENCE": AUDIENCE}
    with prepared(settings) as made:
        made.bootstrap(f"oidc~{issuer.identities.admin.client_id}")
        yield made


@pytest.fixture
def server(installed: LakewardenServer) -> Iterator[LakewardenServer]:
    installed.start()
    yield installed
    installed.stop()


@pytest.fixture
def caller(issuer: RunningIssuer) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {issuer.admin_token()}"
        yield session


def test_a_request_leaves_its_decision_soon(server: LakewardenServer, caller: requests.Session) -> None:
    audit, headers = f"{server.management_uri}/v1/audit", {"x-request-id": "trace-9"}
    for _ in range(3):
        assert caller.get(f"{server.management_uri}/v1/project", headers=headers, timeout=10).status_code == 200
    deadline = time.monotonic() + SOON_S
    entries: list[dict[str, Any]] = []
    while sum(entry["count"] for entry in entries) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
        entries = caller.get(f"{audit}?request-id=trace-9", timeout=10).json()["entries"]
    assert {(entry["action"], entry["outcome"]) for entry in entries} == {("get_metadata", "allowed")}
    assert sum(entry["count"] for entry in entries) == 3


def test_no_change_that_was_answered_is_lost_by_kill_9(server: LakewardenServer, caller: requests.Session) -> None:
    numbers, made = itertools.count(), list[str]()

    def create() -> None:
        while True:
            name = f"role-{next(numbers)}"
            try:
                answer = caller.post(f"{server.management_uri}/v1/role", json={"name": name}, timeout=10)
            except requests.RequestException:
                return  # the server is gone
            assert answer.status_code == 201, answer.text
            made.append(name)

    with ThreadPoolExecutor(CALLERS) as pool:
        running = [pool.submit(create) for _ in range(CALLERS)]
        while len(made) < 50 and not any(each.done() for each in running):
            time.sleep(0.01)
        os.kill(server.process.pid, signal.SIGKILL)
        for each in running:
            each.result(30)
    with psycopg.connect(server.settings[f"{PREFIX}DATABASE__URL"]) as database:
        rows = database.execute("select details->>'name' from audit_entry where action = 'createRole'").fetchall()
        roles = database.execute("select name from role").fetchall()
    assert len(made) >= 50
    assert set(made) <= {name for (name,) in rows}
    # and none of a change that was not made
    assert sorted(rows) == sorted(roles)
