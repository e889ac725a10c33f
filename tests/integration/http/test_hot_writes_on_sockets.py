"""Commits to tables through real connections: a server that gets a signal to stop, and clients that disconnect or are slow."""

import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3

from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer

SOON_S = 60
"""Time for processes on a busy machine to do something short."""
CLIENTS = 12
TABLES = 4
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}

PROPERTIES = {"write.metadata.previous-versions-max": "100000"}


@dataclass
class Tables:
    """A namespace of new tables, `t0`, `t1` and so on."""

    uri: str
    token: str
    client: urllib3.PoolManager = field(init=False)

    def __post_init__(self) -> None:
        headers = {"authorization": f"Bearer {self.token}"}
        self.client = urllib3.PoolManager(retries=False, maxsize=CLIENTS, headers=headers)

    def create(self, count: int) -> None:
        for number in range(count):
            made = self.client.request(
                "POST", self.uri, json={"name": f"t{number}", "schema": SCHEMA, "properties": PROPERTIES}
            )
            assert made.status == 200, made.data

    def commit(self, table: str, **properties: str) -> urllib3.BaseHTTPResponse:
        return self.client.request("POST", f"{self.uri}/{table}", body=body(**properties), timeout=SOON_S)

    def load(self, table: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.request("GET", f"{self.uri}/{table}").json()
        return found

    def sent(self, table: str, **properties: str) -> bytes:
        """A commit as bytes on a connection."""
        content, parts = body(**properties), urlsplit(f"{self.uri}/{table}")
        head = f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\nauthorization: Bearer {self.token}\r\n"
        return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


def body(**properties: str) -> bytes:
    return json.dumps({"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}).encode()


@pytest.fixture
def tables(server: LakewardenServer, issuer: RunningIssuer, request: pytest.FixtureRequest) -> Tables:
    name = f"w{abs(hash(request.node.name))}"
    token = issuer.admin_token()
    headers = {"authorization": f"Bearer {token}"}
    profile = {"type": "local", "base-path": str(server.local_root / name)}
    asked = {"warehouse-name": name, "storage-profile": profile}
    made = urllib3.request("POST", f"{server.management_uri}/v1/warehouse", json=asked, headers=headers)
    assert made.status == 201, made.data
    namespaces = f"{server.catalog_uri}/v1/{made.json()['id']}/namespaces"
    assert urllib3.request("POST", namespaces, json={"namespace": ["sales"]}, headers=headers).status == 200
    return Tables(f"{namespaces}/sales/tables", token)


@dataclass
class Ledger:
    """What one client sent and was told."""

    sent: int = 0
    told: int = 0
    files: list[str] = field(default_factory=list)


def test_a_server_that_stops_in_the_middle_of_batches_keeps_what_it_acknowledged(
    server: LakewardenServer, tables: Tables
) -> None:
    """Whatever was not answered is there as a whole or not at all."""
    tables.create(TABLES)
    for _ in range(3):
        before = [tables.load(f"t{number}")["metadata-location"] for number in range(TABLES)]
        ledgers = _stopped_while_committing(server, tables)
        server.restart()
        tables.client.clear()  # its connections ended with the server
        for number in range(TABLES):
            _check(tables, f"t{number}", before[number], dict(list(enumerate(ledgers))[number::TABLES]))


def _stopped_while_committing(server: LakewardenServer, tables: Tables) -> list[Ledger]:
    ledgers = [Ledger() for _ in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        working = [pool.submit(_commit_until_refused, tables, *each) for each in enumerate(ledgers)]
        wait_until(lambda: sum(each.told for each in ledgers) > 60 or any(each.done() for each in working))
        os.kill(server.process.pid, signal.SIGTERM)
        for each in working:
            each.result(SOON_S)
    return ledgers


def _commit_until_refused(tables: Tables, client: int, ledger: Ledger) -> None:
    while True:
        ledger.sent += 1
        try:
            answer = tables.commit(f"t{client % TABLES}", **{f"c{client}": str(ledger.sent)})
        except urllib3.exceptions.HTTPError:
            return
        if answer.status != 200:
            assert answer.status in {500, 503}, answer.data
            return
        ledger.told = ledger.sent
        ledger.files.append(answer.json()["metadata-location"])


def _check(tables: Tables, table: str, before: str, ledgers: Mapping[int, Ledger]) -> None:
    state = tables.load(table)
    log = [each["metadata-file"] for each in state["metadata"]["metadata-log"]] + [state["metadata-location"]]
    told = {file for ledger in ledgers.values() for file in ledger.files}
    assert told <= set(log[log.index(before) + 1 :])
    assert all(json.loads(Path(file.removeprefix("file://")).read_bytes()) for file in log)
    for client, ledger in ledgers.items():
        assert ledger.told <= int(state["metadata"]["properties"].get(f"c{client}", "0")) <= ledger.sent


def test_clients_that_go_away_leave_whole_commits_and_no_burden(server: LakewardenServer, tables: Tables) -> None:
    """A thousand clients close their connections as soon as they have sent a commit, or half of one."""
    tables.create(2)
    assert tables.commit("t0", first="1").status == 200
    port = int(server.uri.rpartition(":")[2])
    for number in range(1000):
        whole = tables.sent("t0", **{f"k{number}": "x"})
        with socket.create_connection(("127.0.0.1", port)) as leaving:
            leaving.sendall(whole if number % 2 else whole[:-10])
        if number % 100 == 0:
            # a busy server may have all of this caller's places taken for a moment
            wait_until(lambda: tables.commit("t1", seen="x").status == 200)

    def has_settled() -> bool:
        location = tables.load("t0")["metadata-location"]
        time.sleep(0.5)
        return bool(tables.load("t0")["metadata-location"] == location)

    wait_until(has_settled)
    metadata = tables.load("t0")["metadata"]
    keys = {int(key[1:]) for key in metadata["properties"] if key[0] == "k"}
    assert all(number % 2 for number in keys), "half a commit was carried out"
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = pool.map(lambda number: tables.commit("t0", **{f"after{number}": "x"}).status, range(100))
        assert Counter(answers) == {200: 100}


def test_bodies_that_trickle_in_hold_up_no_commit(server: LakewardenServer, tables: Tables) -> None:
    tables.create(1)
    port = int(server.uri.rpartition(":")[2])
    with ExitStack() as slow:
        for number in range(200):
            connection = slow.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(tables.sent("t0", **{f"slow{number}": "x"})[:-5])
        for number in range(20):
            assert tables.commit("t0", **{f"calm{number}": "x"}).status == 200
    properties = tables.load("t0")["metadata"]["properties"]
    assert {key for key in properties if key.startswith(("slow", "calm"))} == {f"calm{n}" for n in range(20)}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
