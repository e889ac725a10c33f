"""The how-to of sending changes, as a person follows it: files and standard input against a running server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.servers.lakewarden_server import DevServer, start_dev

ROWS = ("--format", "rows", "--key", "id")


@pytest.fixture(scope="module")
def server() -> Iterator[DevServer]:
    with start_dev() as running:
        headers = {"authorization": f"Bearer {running.token(running.info.engine)}"}
        address = f"{running.info.catalog_uri}/v1/{running.info.warehouse.id}/namespaces"
        assert urllib3.request("POST", address, json={"namespace": ["app"]}, headers=headers).status == 200
        yield running


def gateway(server: DevServer) -> dict[str, Any]:
    """The gateway's own counts of the warehouse."""
    base = server.info.catalog_uri.removesuffix("/catalog")
    headers = {"authorization": f"Bearer {server.token(server.info.engine)}"}
    address = f"{base}/lakehouse/w/{server.info.warehouse.name}/analytics/status"
    return dict(json.loads(urllib3.request("GET", address, headers=headers, timeout=30.0).data))


def command(server: DevServer, tmp_path: Path, *arguments: str) -> list[str]:
    ready = tmp_path / "ready.json"
    if not ready.exists():
        ready.write_bytes((server.data_dir / "ready.json").read_bytes())
    return [sys.executable, "-m", "lakewarden.cli", "ingest", "send", *arguments, "--ready-file", str(ready)]


def send(server: DevServer, tmp_path: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        command(server, tmp_path, *arguments),
        env=environment,
        input=stdin,
        capture_output=True,
        timeout=240,
        check=False,
    )


def test_rows_arrive_once_and_added_lines_follow(server: DevServer, tmp_path: Path) -> None:
    before = gateway(server)["eventsReceived"]
    file = tmp_path / "users.ndjson"
    file.write_text('{"id": 1, "name": "Ada"}\n{"id": 2, "name": "Grace"}\n')
    first = send(server, tmp_path, str(file), *ROWS, "--table", "app.users")
    assert first.returncode == 0, first.stderr
    assert b"2 events in 1 batches acknowledged" in first.stdout
    with file.open("a") as more:
        more.write('{"id": 3, "name": "Lin"}\n')
    for expected in (b"1 events in 1 batches", b"0 events in 0 batches"):
        assert expected in send(server, tmp_path, str(file), *ROWS, "--table", "app.users").stdout
    assert gateway(server)["eventsReceived"] == before + 3


def test_standard_input(server: DevServer, tmp_path: Path) -> None:
    before = gateway(server)["eventsReceived"]
    done = send(server, tmp_path, "-", *ROWS, "--table", "app.users", stdin=b'{"id": 9}\n')
    assert (done.returncode, gateway(server)["eventsReceived"]) == (0, before + 1), done.stderr


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_killed_run_is_resumed_to_exactly_the_lines_of_the_file(
    server: DevServer, tmp_path: Path, kind: signal.Signals
) -> None:
    before, lines = gateway(server)["eventsReceived"], 100_000
    file = tmp_path / "big.ndjson"
    file.write_text("".join(f'{{"id": {number}, "text": "row {number}"}}\n' for number in range(lines)))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = (str(file), *ROWS, "--table", "app.big")
    with subprocess.Popen(command(server, tmp_path, *arguments), env=environment, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while gateway(server)["eventsReceived"] == before:
            assert time.monotonic() < deadline
        process.send_signal(kind)
        process.wait(60)
    done = send(server, tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert gateway(server)["eventsReceived"] == before + lines


def test_what_the_gateway_refuses_is_said_with_its_lines(server: DevServer, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text('{"id": 1}\n')
    done = send(server, tmp_path, str(file), *ROWS, "--table", "nowhere.users")
    assert done.returncode == 1
    assert b"Namespace does not exist: nowhere" in done.stderr
    assert b"lines 1 to 1" in done.stderr
