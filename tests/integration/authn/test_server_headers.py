"""Authorization headers of every size and kind, as bytes on a socket to the real server process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.issuer import free_port

# what `lakewarden serve` does once the database is current: no request here comes as far as the database
SERVE = """
import sys
from lakewarden.stop import Stop
stop = Stop()
stop.watch()
from lakewarden import config
from lakewarden.serving.run import run
sys.exit(run(config.current(), stop))
"""


@dataclass(frozen=True)
class Server:
    port: int
    log: Path

    def get(self, authorization: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(
                b"GET /catalog/v1/config?warehouse=w HTTP/1.1\r\nHost: lake\r\nConnection: close\r\n"
                b"Authorization: " + authorization + b"\r\n\r\n"
            )
            answer = b""
            while part := connection.recv(65536):
                answer += part
            return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARDEN__")} | {
        "LAKEWARDEN__SERVER__PORT": str(port),
        "LAKEWARDEN__SERVER__PROCESSES": "1",
        "LAKEWARDEN__DATABASE__URL": "postgresql://nobody:none@127.0.0.1:1/none",
        "LAKEWARDEN__OPENID__OIDC__ISSUER": f"http://127.0.0.1:{free_port()}",
    }
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", SERVE], env=environment, stdout=output, stderr=output)
    try:
        _wait_until_it_listens(port, process, log)
        yield Server(port, log)
    finally:
        process.terminate()
        try:
            assert process.wait(timeout=20) == 0, log.read_text()
        finally:
            process.kill()


def _wait_until_it_listens(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server did not listen within 30 s: {log.read_text()}")


@pytest.mark.parametrize(
    ("authorization", "status", "said"),
    [
        (b"Bearer " + b"a" * 17_000, b"401", b"longer than 16384 bytes"),
        (b"Bearer " + b"a.b.c" * 4_000, b"401", b"longer than 16384 bytes"),
        (b"Bearer " + b"a" * 100_000, b"431", b"larger than 65536 bytes"),
        (b"Bearer " + b"\xff\xfe\x80", b"401", b"damaged"),
        (b"B\xe9arer token", b"401", b"does not use the Bearer scheme"),
        (b"Bearer {}", b"401", b"damaged"),
        (b"Bearer a b", b"401", b"damaged"),
        (b"Bearer a.b.c", b"401", b"malformed"),
        (b"", b"401", b"no Authorization header"),
        (b"Bearer a\x01b", b"400", b"Invalid HTTP request"),
        (b"Bearer a\x00b", b"400", b"Invalid HTTP request"),
        (b"Bearer opaque", b"401", b"not a JWT"),
    ],
)
def test_every_header_gets_a_clean_answer(server: Server, authorization: bytes, status: bytes, said: bytes) -> None:
    answer = server.get(authorization)

    assert answer.startswith(b"HTTP/1.1 " + status + b" "), answer[:300]
    assert said in answer
    assert b"Traceback" not in answer
    assert "Traceback" not in server.log.read_text()
