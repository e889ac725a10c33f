"""Frames that no ordinary client sends, on raw connections to the gateway of a real server."""

import base64
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3
from websockets.frames import Frame, Opcode

from lakewarden.http.sockets import MOST_FRAMES
from tests.integration.ingest.messages import batch
from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer

SOON_S = 60
"""Time for a busy machine."""
MIB = 1024 * 1024
POLICY = 1008
_ESTABLISHED = 1
"""TCP_ESTABLISHED of Linux's `TCP_INFO`."""


class Raw:
    """A socket whose handshake is over."""

    def __init__(self, uri: str, token: str) -> None:
        host, port = urlsplit(uri).hostname, urlsplit(uri).port
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(SOON_S)
        self.sock.connect((host, port))
        lines = [
            "GET /lakehouse/w/lake/ws HTTP/1.1",
            f"Host: {host}:{port}",
            f"Authorization: Bearer {token}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        ]
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        self._reader = self.sock.makefile("rb")
        assert b" 101 " in self._reader.readline()
        while self._reader.readline() != b"\r\n":
            pass

    def close(self) -> None:
        self._reader.close()
        self.sock.close()

    def send(self, content: bytes) -> None:
        self.sock.sendall(content)

    def next(self) -> tuple[int, bytes]:
        """Opcode and content of the next frame of the server, which are short."""
        head = self._reader.read(2)
        if len(head) < 2:
            raise EOFError
        size = head[1]
        if size == 126:
            size = int.from_bytes(self._reader.read(2), "big")
        return head[0] & 15, self._reader.read(size)

    def closed(self) -> int:
        """The code, after whatever comes before it."""
        while True:
            opcode, content = self.next()
            if opcode == Opcode.CLOSE:
                return int.from_bytes(content[:2], "big")


def frame(opcode: int, content: bytes = b"", *, is_last: bool = True) -> bytes:
    return Frame(Opcode(opcode), content, fin=is_last).serialize(mask=True)


@pytest.fixture(scope="module")
def token(server: LakewardenServer, issuer: RunningIssuer) -> str:
    """Of somebody who may send to the warehouse `lake`, at a server of one process."""
    server.restart({"LAKEWARDEN__SERVER__PROCESSES": "1", "LAKEWARDEN__SERVER__WRITE_TIMEOUT_S": "1"})
    token = issuer.admin_token()
    headers = {"authorization": f"Bearer {token}"}
    profile = {"type": "local", "base-path": str(server.local_root / "lake")}
    asked = {"warehouse-name": "lake", "storage-profile": profile}
    made = urllib3.request("POST", f"{server.management_uri}/v1/warehouse", json=asked, headers=headers)
    assert made.status == 201, made.data
    path = f"{server.catalog_uri}/v1/{made.json()['id']}/namespaces"
    assert urllib3.request("POST", path, json={"namespace": ["default"]}, headers=headers).status == 200
    return token


@pytest.fixture
def raw(server: LakewardenServer, token: str) -> Iterator[Raw]:
    with closing(Raw(server.uri, token)) as opened:
        yield opened


def test_a_message_of_endless_empty_fragments_ends_the_connection(raw: Raw) -> None:
    raw.send(frame(Opcode.TEXT, b"{", is_last=False))
    with suppress(ConnectionError):
        for _ in range(100):
            raw.send(frame(Opcode.CONT, is_last=False) * 1000)
    assert raw.closed() == POLICY


def test_a_message_in_fragments_between_pings_is_one_message(raw: Raw) -> None:
    content = json.dumps(batch(1)).encode()
    parts = [content[at : at + 10] for at in range(0, len(content), 10)]
    raw.send(frame(Opcode.TEXT, parts[0], is_last=False))
    for part in parts[1:]:
        raw.send(frame(Opcode.PING, b"x") + frame(Opcode.CONT, part, is_last=False))
    raw.send(frame(Opcode.CONT))
    found = [raw.next() for _ in range(len(parts))]
    assert [opcode for opcode, _ in found] == [Opcode.PONG] * (len(parts) - 1) + [Opcode.TEXT]
    assert json.loads(found[-1][1])["status"] == "ok"


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG])
def test_endless_pings_end_the_connection(raw: Raw, opcode: int) -> None:
    # no more than it reads: what arrives after the end resets the connection, and with it the reason
    raw.send(frame(opcode, b"x") * (MOST_FRAMES + 1))
    assert raw.closed() == POLICY


def test_clients_that_do_not_read_cost_little_memory_and_are_gone_after_a_while(
    server: LakewardenServer, token: str
) -> None:
    """Messages begin the count of pings anew, and the answers to both are never read."""
    pid = server.process.pid
    memory = memory_of(pid)
    asked = frame(Opcode.PING, b"x" * 125) * (MOST_FRAMES - 1) + frame(Opcode.TEXT, b'{"type":"heartbeat"}')
    with ExitStack() as stack:
        raws = [stack.enter_context(closing(Raw(server.uri, token))) for _ in range(3)]
        for raw in raws:
            raw.sock.settimeout(1)
            with suppress(ConnectionError, TimeoutError):
                for _ in range(400):  # of 130 KB
                    raw.send(asked)
        assert memory_of(pid) - memory < 20 * MIB
        until(lambda: not any(is_open(raw.sock) for raw in raws))


def memory_of(pid: int) -> int:
    (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def is_open(sock: socket.socket) -> bool:
    """Whether the other side has neither closed the connection nor reset it."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED


def until(is_so: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < SOON_S
        time.sleep(0.1)
