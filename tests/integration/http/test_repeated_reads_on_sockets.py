"""Reads that come again, byte for byte, on connections that do odd things, to a real server."""

import http.client
import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import urllib3

from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer

SOON_S = 20
"""Time for processes on a busy machine to do something short."""
AGAIN = 6
"""Often enough that a request is kept, and then answered as it is."""
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@dataclass(frozen=True)
class Place:
    """A namespace with the tables `a` and `b`."""

    host: str
    port: int
    path: str
    token: str

    def request(self, table: str, *more: str, method: str = "GET") -> bytes:
        lines = [
            f"{method} {self.path}/tables/{table} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
            *more,
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=SOON_S)


@pytest.fixture(scope="module")
def place(server: LakewardenServer, issuer: RunningIssuer) -> Place:
    token = issuer.admin_token()
    headers = {"authorization": f"Bearer {token}"}
    profile = {"type": "local", "base-path": str(server.local_root / "lake")}
    asked = {"warehouse-name": "lake", "storage-profile": profile}
    made = urllib3.request("POST", f"{server.management_uri}/v1/warehouse", json=asked, headers=headers)
    assert made.status == 201, made.data
    namespaces = f"{server.catalog_uri}/v1/{made.json()['id']}/namespaces"
    assert urllib3.request("POST", namespaces, json={"namespace": ["sales"]}, headers=headers).status == 200
    for name in "ab":
        body = {"name": name, "schema": SCHEMA, "properties": {"name": name}}
        assert urllib3.request("POST", f"{namespaces}/sales/tables", json=body, headers=headers).status == 200
    parts = urlsplit(f"{namespaces}/sales")
    assert parts.hostname is not None
    return Place(parts.hostname, parts.port or 80, parts.path, token)


class Replies:
    """Reads answers from a connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def next(self, *, is_head: bool = False) -> tuple[int, bytes]:
        status = self._head()
        while status == 100:
            status = self._head()
        length = int(self._headers.get("content-length", 0))
        body = b"" if is_head else self._file.read(length)
        assert is_head or len(body) == length
        return status, body

    def _head(self) -> int:
        line = self._file.readline()
        if not line:
            raise ConnectionAbortedError
        self._headers = http.client.parse_headers(self._file)
        return int(line.split()[1])

    def is_at_the_end(self) -> bool:
        return not self._file.read(1)


def name_in(answer: tuple[int, bytes]) -> str:
    status, body = answer
    assert status == 200, body
    return str(json.loads(body)["metadata"]["properties"]["name"])


def test_requests_that_expect_to_be_told_to_continue(place: Place) -> None:
    """They have no body; some clients send the header with each request."""
    with place.connect() as connection:
        replies = Replies(connection)
        for _ in range(AGAIN):
            for table in "ab":
                connection.sendall(place.request(table, "Expect: 100-continue"))
                assert name_in(replies.next()) == table


def test_a_connection_whose_other_half_is_closed_gets_its_answer(place: Place) -> None:
    for before in range(AGAIN):
        with place.connect() as connection:
            replies = Replies(connection)
            for _ in range(before):
                connection.sendall(place.request("a"))
                assert name_in(replies.next()) == "a"
            connection.sendall(place.request("a"))
            connection.shutdown(socket.SHUT_WR)
            with suppress(ConnectionAbortedError):  # it may be closed instead, but nothing else may come
                assert name_in(replies.next()) == "a"
            assert replies.is_at_the_end()


def test_requests_ahead_are_answered_in_their_order(place: Place) -> None:
    order = "abbaabab" * 4
    with place.connect() as connection:
        replies = Replies(connection)
        for _ in range(AGAIN):
            connection.sendall(b"".join(place.request(table) for table in order))
            assert "".join(name_in(replies.next()) for _ in order) == order


def test_heads_and_loads_ahead_do_not_get_each_others_answers(place: Place) -> None:
    with place.connect() as connection:
        replies = Replies(connection)
        for _ in range(AGAIN):
            connection.sendall(place.request("a", method="HEAD") + place.request("b") + place.request("a"))
            assert replies.next(is_head=True)[0] == 204
            assert name_in(replies.next()) == "b"
            assert name_in(replies.next()) == "a"


@pytest.mark.parametrize("at", [1, 3, 60, -40, -3, -1])
def test_a_request_that_arrives_in_two_pieces_is_the_same_request(place: Place, at: int) -> None:
    with place.connect() as connection:
        replies = Replies(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(AGAIN):
            whole = place.request("a")
            connection.sendall(whole)
            assert name_in(replies.next()) == "a"
            connection.sendall(whole[:at])
            time.sleep(0.02)
            connection.sendall(whole[at:] + place.request("b"))
            assert name_in(replies.next()) == "a"
            assert name_in(replies.next()) == "b"


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"x", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01", b"\x00" * 100])
def test_what_is_no_request_after_one_that_came_again_is_refused(place: Place, end: bytes) -> None:
    with place.connect() as connection:
        replies = Replies(connection)
        for _ in range(AGAIN):
            connection.sendall(place.request("a"))
            assert name_in(replies.next()) == "a"
        connection.sendall(end)
        connection.shutdown(socket.SHUT_WR)
        rest = connection.recv(65536)
        assert rest.startswith(b"HTTP/1.1 400") or rest == b""


def test_a_server_that_stops_while_they_run_ends_no_answer_in_the_middle(
    server: LakewardenServer, place: Place
) -> None:
    counts: list[int] = []

    def ask() -> None:
        """Until the connection is closed, or a new one is refused; each answer is whole."""
        answered = 0
        with place.connect() as connection:
            while True:
                try:
                    connection.sendall(place.request("a"))
                    status, body = Replies(connection).next()
                except OSError:
                    break
                assert status in {200, 503}, body
                assert status == 503 or name_in((status, body)) == "a"
                answered += 1
        counts.append(answered)

    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(ask) for _ in range(8)]
        time.sleep(1.5)
        os.kill(server.process.pid, signal.SIGTERM)
        for each in running:
            each.result(SOON_S)
    assert server.process.wait(SOON_S) == 0
    server.stop()
    assert min(counts) > AGAIN
    server.start()
