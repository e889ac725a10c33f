"""`lakewarden serve --processes N`: real processes that share a port, one of which is killed, frozen or stopped."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import urllib3

from standalone.commands import AUDIENCE, lakewarden_command
from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

PROCESSES = 2
SOON_S = 60
"""Time for processes on a busy machine to do something short."""


@pytest.fixture(scope="module")
def server(issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    settings = {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
        "LAKEWARDEN__SERVER__STOP_TIMEOUT_S": "10",
        # longer than a healthy process may go without the processor on a busy machine
        "LAKEWARDEN__SERVER__HANG_TIMEOUT_S": "8",
        "LAKEWARDEN__SERVER__PROCESSES": str(PROCESSES),
        "LAKEWARDEN__USAGE__FLUSH_INTERVAL_S": "1",
    }
    with prepared(settings) as server:
        server.bootstrap(f"oidc~{issuer.identities.admin.subject}")
        server.start()
        yield server


@pytest.fixture
def client(issuer: RunningIssuer) -> Iterator[urllib3.PoolManager]:
    token = issuer.admin_token()
    with urllib3.PoolManager(retries=False, maxsize=16, headers={"authorization": f"Bearer {token}"}) as pool:
        yield pool


def children(pid: int) -> list[int]:
    """The processes that serve."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in found if b"serve-one" in command_line(each)]


def command_line(pid: str) -> bytes:
    """Empty for a process that has ended since it was listed."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def until(condition: Callable[[], Any], *, within_s: float = SOON_S) -> Any:
    deadline = time.monotonic() + within_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"{condition} is still not so"
        time.sleep(0.05)


def until_gone(server: LakewardenServer, victim: int) -> None:
    until(lambda: victim not in children(server.process.pid))


def are_all_there(server: LakewardenServer) -> bool:
    return len(children(server.process.pid)) == PROCESSES and told(server)["processes"] == f"{PROCESSES} of {PROCESSES}"


def told(server: LakewardenServer) -> dict[str, Any]:
    found: dict[str, Any] = urllib3.request("GET", f"{server.uri}/health").json()
    return found


def warehouse(server: LakewardenServer, client: urllib3.PoolManager, name: str) -> str:
    body = {
        "warehouse-name": name,
        "storage-profile": {"type": "local", "base-path": str(server.local_root / name)},
    }
    made = client.request("POST", f"{server.management_uri}/v1/warehouse", json=body)
    assert made.status == 201, made.data
    return str(made.json()["id"])


def test_it_is_ready_when_all_are(server: LakewardenServer) -> None:
    assert len(children(server.process.pid)) == PROCESSES
    assert told(server)["processes"] == f"{PROCESSES} of {PROCESSES}"


def test_connections_that_are_opened_at_once_are_spread(server: LakewardenServer) -> None:
    """Without a rule, one process accepts them all. A process that gets no processor for a moment accepts none."""
    assert any(min(spread(server)) >= 2 for _ in range(5))


def spread(server: LakewardenServer) -> list[int]:
    """How many of new connections each process has accepted."""
    port = int(server.uri.rpartition(":")[2])
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(4 * PROCESSES)]
    try:
        for each in connections:
            each.sendall(b"GET /health/live HTTP/1.1\r\nhost: here\r\n\r\n")
            assert each.recv(65536).startswith(b"HTTP/1.1 200")
        held = [connections_of(child, port) for child in children(server.process.pid)]
        assert sum(held) >= len(connections), held
        return held
    finally:
        for each in connections:
            each.close()


def connections_of(pid: int, port: int) -> int:
    """Established ones, as the kernel tells it."""
    inodes = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if int(words[1].rpartition(":")[2], 16) == port and words[3] == "01":
            inodes.add(f"socket:[{words[9]}]")
    links = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed since it was listed
            links.append(str(each.readlink()))
    return sum(each in inodes for each in links)


def test_a_killed_process_is_replaced_and_nothing_acknowledged_is_lost(
    server: LakewardenServer, client: urllib3.PoolManager
) -> None:
    prefix = warehouse(server, client, "killed")
    uri = f"{server.catalog_uri}/v1/{prefix}/namespaces"
    is_over = threading.Event()
    acknowledged: list[str] = []
    statuses: Counter[int | str] = Counter()

    def create(worker: int) -> None:
        number = 0
        while not is_over.is_set():
            name, number = f"n{worker}_{number}", number + 1
            try:
                status = client.request("POST", uri, json={"namespace": [name]}, timeout=30).status
            except urllib3.exceptions.HTTPError as error:
                statuses[type(error).__name__] += 1
                continue
            statuses[status] += 1
            if status == 200:
                acknowledged.append(name)

    def until_more_than(number: int) -> None:
        until(lambda: len(acknowledged) > number)

    with ThreadPoolExecutor(6) as clients:
        working = [clients.submit(create, worker) for worker in range(6)]
        try:
            for _ in range(2):
                until_more_than(len(acknowledged) + 20)
                victim = children(server.process.pid)[0]
                os.kill(victim, signal.SIGKILL)
                until_gone(server, victim)
                until_more_than(len(acknowledged) + 20)
                until(lambda: are_all_there(server))
        finally:
            is_over.set()
        for each in working:
            each.result()
    assert set(statuses) <= {200, "ProtocolError", "NewConnectionError"}, statuses
    assert statuses["ProtocolError"] <= 2 * 6, statuses
    with psycopg.connect(server.settings["LAKEWARDEN__DATABASE__URL"]) as looking:
        kept = {row[0] for row in looking.execute("select unnest(path) from namespace")}
    assert set(acknowledged) <= kept


def test_a_frozen_process_is_replaced(server: LakewardenServer) -> None:
    """It accepts no connections, so no probe from outside could reach it."""
    victim = children(server.process.pid)[0]
    os.kill(victim, signal.SIGSTOP)
    assert urllib3.request("GET", f"{server.uri}/health/live", timeout=10).status == 200
    until_gone(server, victim)
    until(lambda: are_all_there(server))
    assert "no sign of life" in server.log_text()


def test_calls_are_counted_whichever_process_answered(server: LakewardenServer, client: urllib3.PoolManager) -> None:
    prefix = warehouse(server, client, "counted")
    path = f"{server.catalog_uri}/v1/{prefix}/namespaces"
    with ThreadPoolExecutor(9) as clients:
        answers = list(clients.map(lambda _: client.request("GET", path).status, range(90)))
    assert set(answers) == {200}
    with psycopg.connect(server.settings["LAKEWARDEN__DATABASE__URL"], autocommit=True) as looking:
        until(
            lambda: (
                looking.execute(
                    "select sum(count) from endpoint_calls where route = %s and warehouse_id = %s",
                    ["GET /catalog/v1/{prefix}/namespaces", prefix],
                ).fetchone()
                == (90,)
            )
        )


def test_processes_that_cannot_start_end_the_server(server: LakewardenServer) -> None:
    """A process that is killed before it was ever ready ends the server; so does a port that is taken."""
    environment = server._environment() | {"LAKEWARDEN__SERVER__PORT": "0"}
    with server.log.open("ab") as log:
        process = subprocess.Popen(lakewarden_command("serve"), env=environment, stdout=log, stderr=log, cwd="/")
    try:
        victim = until(lambda: children(process.pid))[0]
        os.kill(victim, signal.SIGKILL)
        assert process.wait(SOON_S) == 1
        assert "was ended by SIGKILL before it was ready: the server ends" in server.log_text()
    finally:
        process.kill()


def test_too_few_threads_for_the_processes_are_refused_with_a_sentence(server: LakewardenServer) -> None:
    done = subprocess.run(
        [*lakewarden_command("serve"), "--processes", "5"],
        env=server._environment(),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )
    assert done.returncode == 1
    assert "each process needs 4 threads, so set threads to 20 or more" in done.stderr


def test_ctrl_c_stops_all_of_them(server: LakewardenServer) -> None:
    """Each process of the terminal's group gets the signal, and may still end what it has begun."""
    found = children(server.process.pid)
    assert len(found) == PROCESSES
    os.killpg(server.process.pid, signal.SIGINT)
    assert server.process.wait(SOON_S) == 0
    assert not [each for each in found if Path(f"/proc/{each}").exists()]


def test_a_hang_up_stops_all_of_them(server: LakewardenServer) -> None:
    server.restart()
    os.kill(server.process.pid, signal.SIGHUP)
    assert server.process.wait(SOON_S) == 0


def test_processes_do_not_outlive_a_killed_supervisor(server: LakewardenServer) -> None:
    server.restart()
    found = children(server.process.pid)
    os.kill(server.process.pid, signal.SIGKILL)
    until(lambda: not [each for each in found if Path(f"/proc/{each}").exists()])
