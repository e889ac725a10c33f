"""`lakewarden serve` as a process that gets a signal to stop: at any moment, with requests that hang, twice."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import urllib3

from standalone.commands import AUDIENCE, lakewarden_command
from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

STOP_S = 2
AFTERWARDS_S = 4
LOCK = 'lock table "server", project, lakewarden_user in access exclusive mode'
BOOTSTRAP = b'{"accept-terms-of-use": true}'
SOON_S = 20
"""Time for a process on a busy machine to do something short."""


@pytest.fixture(scope="module")
def server(issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    settings = {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
        "LAKEWARDEN__SERVER__STOP_TIMEOUT_S": str(STOP_S),
        # longer than everything here: only the end of the process ends what waits
        "LAKEWARDEN__DATABASE__LOCK_TIMEOUT_S": "300",
        "LAKEWARDEN__DATABASE__STATEMENT_TIMEOUT_S": "300",
    }
    with prepared(settings) as made:
        yield made


@pytest.fixture
def token(issuer: RunningIssuer) -> str:
    return issuer.admin_token()


def ended(server: LakewardenServer, *, within_s: float) -> int | None:
    code = server.process.wait(within_s)
    server.stop()
    return code


def test_requests_that_hang_get_no_answer_and_the_process_ends_in_its_time(
    server: LakewardenServer, token: str
) -> None:
    """Old code: it waited for the lock however long that took, and then answered 500 for what it had done."""
    url = server.settings["LAKEWARDEN__DATABASE__URL"]
    server.start()
    client = urllib3.PoolManager(retries=False, maxsize=8, headers={"authorization": f"Bearer {token}"})
    path = f"{server.management_uri}/v1/bootstrap"

    def ask() -> str:
        try:
            return f"HTTP {client.request('POST', path, body=BOOTSTRAP, timeout=60).status}"
        except urllib3.exceptions.HTTPError as error:
            return type(error).__name__

    with psycopg.connect(url) as holder, ThreadPoolExecutor(4) as clients:
        holder.execute(LOCK)
        asked = [clients.submit(ask) for _ in range(4)]
        wait_for_sessions(url, waiting=True)
        assert urllib3.request("GET", f"{server.uri}/health/live").status == 200
        began = time.monotonic()
        os.kill(server.process.pid, signal.SIGTERM)
        assert ended(server, within_s=STOP_S + AFTERWARDS_S + SOON_S) == 0
        assert time.monotonic() - began >= STOP_S
        assert {each.result() for each in asked} == {"ProtocolError"}
        wait_for_sessions(url, waiting=False)  # though the lock is still held


def wait_for_sessions(url: str, *, waiting: bool) -> None:
    """Until sessions wait for a lock, or none does."""
    deadline = time.monotonic() + SOON_S
    with psycopg.connect(url, autocommit=True) as looking:
        while True:
            found = looking.execute(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            ).fetchone()
            assert found is not None
            if bool(found[0]) == waiting:
                return
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


def wait_until_closed(server: LakewardenServer) -> None:
    """Until the port is closed, which is the first thing that a stop does."""
    deadline = time.monotonic() + SOON_S
    while True:
        try:
            urllib3.request("GET", f"{server.uri}/health/live", retries=False, timeout=5)
        except urllib3.exceptions.HTTPError:
            return
        assert time.monotonic() < deadline, "the port is still open"
        time.sleep(0.05)


def test_a_second_signal_ends_the_process_at_once(server: LakewardenServer, token: str) -> None:
    url = server.settings["LAKEWARDEN__DATABASE__URL"]
    server.start({"LAKEWARDEN__SERVER__STOP_TIMEOUT_S": "600"})
    client = urllib3.PoolManager(retries=False, headers={"authorization": f"Bearer {token}"})
    with psycopg.connect(url) as holder, ThreadPoolExecutor(1) as clients:
        holder.execute(LOCK)
        clients.submit(client.request, "POST", f"{server.management_uri}/v1/bootstrap", body=BOOTSTRAP, timeout=60)
        wait_for_sessions(url, waiting=True)
        os.kill(server.process.pid, signal.SIGTERM)
        wait_until_closed(server)  # two signals that are pending at once are one
        assert server.process.wait(1) is None
        os.kill(server.process.pid, signal.SIGTERM)
        assert ended(server, within_s=SOON_S) == 128 + signal.SIGTERM
    server.settings["LAKEWARDEN__SERVER__STOP_TIMEOUT_S"] = str(STOP_S)


@pytest.mark.parametrize("after_ms", [0, 20, 100, 300, 600, 1000, 1500, 2500])
def test_term_at_any_moment_of_the_start_ends_the_process_cleanly(server: LakewardenServer, after_ms: int) -> None:
    """Before its first line runs, Python itself ends by the signal; from then on it is always code 0."""
    process = started(server, port=0)
    time.sleep(after_ms / 1000)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SOON_S) in {0, -signal.SIGTERM}


@pytest.mark.parametrize("after_ms", [0, 2, 5, 10, 20, 50])
def test_term_right_after_the_port_is_open_is_not_lost(server: LakewardenServer, after_ms: int) -> None:
    """Old code: it served on, as the signal had reached a handler that did nothing."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    process = started(server, port=port)
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.001)
    time.sleep(after_ms / 1000)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SOON_S) == 0


def started(server: LakewardenServer, *, port: int) -> subprocess.Popen[bytes]:
    environment = server._environment() | {"LAKEWARDEN__SERVER__PORT": str(port)}
    with server.log.open("ab") as log:
        return subprocess.Popen(lakewarden_command("serve"), env=environment, stdout=log, stderr=log, cwd="/")
