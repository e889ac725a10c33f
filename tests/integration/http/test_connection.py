"""A served application on a socket: headers that are too large or never end, clients that do not read, too many
connections.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lakewarden import config
from lakewarden.http.connection import MAX_HEADER_BYTES, MAX_HEADERS, MAX_PIPELINED, SPARE
from lakewarden.serving.server import Server
from tests.integration.http.served_here import ServedHere

LARGE = 32 * 1024 * 1024
MOST = 8
"""Connections."""
SOON_S = 15
"""Far longer than the time-outs below, for a busy machine."""
GO_ON = threading.Event()
"""Until it is set, requests for `/health/held` are in progress."""


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Reads the body; answers ok, or much, or after a while, or who asked."""
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(2)
    if scope["path"] == "/health/held":
        await asyncio.to_thread(GO_ON.wait)
    content = b"x" * LARGE if scope["path"] == "/large" else b"ok"
    if scope["path"] == "/whoami":
        content = f"{scope['scheme']} {scope['client'][0]}".encode()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", str(len(content)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": content})


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name, value in {
        "HEADER_TIMEOUT_S": "1",
        "WRITE_TIMEOUT_S": "1",
        "MAX_CONNECTIONS": str(MOST),
        "STOP_TIMEOUT_S": "1",
    }.items():
        monkeypatch.setenv(f"LAKEWARDEN__SERVER__{name}", value)
    config.current.cache_clear()
    GO_ON.clear()
    listener = socket.create_server(("127.0.0.1", 0))
    server = ServedHere(config.current().server, application=echo)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    server.address = listener.getsockname()  # type: ignore[attr-defined]
    try:
        yield server
    finally:
        GO_ON.set()
        server.should_exit = True
        thread.join(10)
        config.current.cache_clear()


@pytest.fixture
def address(served: Server) -> tuple[str, int]:
    return served.address  # type: ignore[attr-defined, no-any-return]


def received(connection: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    answer = b""
    try:
        while part := connection.recv(65536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=SOON_S)


def asked(address: tuple[str, int], path: str = "/") -> bytes:
    with connected(address) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return received(connection)


def error_of(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    return int(head.split(b" ")[1]), json.loads(body)["error"]["type"]


def test_the_protocol_believes_nobody_who_says_where_they_come_from(address: tuple[str, int]) -> None:
    with connected(address) as connection:
        told = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nConnection: close"
        connection.sendall(f"GET /whoami HTTP/1.1\r\nHost: a\r\n{told}\r\n\r\n".encode())
        assert received(connection).endswith(b"\r\n\r\nhttp 127.0.0.1")


def test_a_head_that_grows_past_the_limit_is_refused_and_the_connection_closed(address: tuple[str, int]) -> None:
    with connected(address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ")
        try:
            for _ in range(40):
                connection.sendall(b"a" * 8192)
                time.sleep(0.005)
        except OSError:
            pass  # it closed the connection while we were still writing
        assert error_of(received(connection)) == (431, "HeadersTooLargeException")


def test_a_complete_head_that_is_too_large_is_refused_too(address: tuple[str, int]) -> None:
    """Old code: it was accepted if it arrived in one piece of 256 KiB."""
    with connected(address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 2 * MAX_HEADER_BYTES + b"\r\n\r\n")
        assert error_of(received(connection)) == (431, "HeadersTooLargeException")


def test_many_small_headers_are_refused(address: tuple[str, int]) -> None:
    with connected(address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * MAX_HEADERS + b"\r\n")
        assert error_of(received(connection)) == (431, "HeadersTooLargeException")


def test_a_trailer_that_never_ends_is_refused(address: tuple[str, int]) -> None:
    """Old code: what follows a chunked body was kept without a limit."""
    with connected(address) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n")
        began = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT012 whichever of them sees that the connection is closed
            while time.monotonic() - began < SOON_S:
                connection.sendall(b"a: " + b"b" * 8192 + b"\r\n")
                time.sleep(0.005)


def test_large_bodies_and_many_requests_on_a_connection_are_no_head(address: tuple[str, int]) -> None:
    body = b"b" * (3 * MAX_HEADER_BYTES)
    with connected(address) as connection:
        for _ in range(3):
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            answer = b""
            while not answer.endswith(b"ok"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("began", [b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_a_head_that_does_not_end_is_given_up(address: tuple[str, int], began: bytes) -> None:
    """Old code: it was waited for without end."""
    with connected(address) as connection:
        connection.sendall(began)
        assert error_of(received(connection)) == (408, "RequestTimeoutException")


@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n"])
def test_a_connection_on_which_nothing_is_asked_is_closed(address: tuple[str, int], sent: bytes) -> None:
    with connected(address) as connection:
        connection.sendall(sent)
        received(connection)


def test_a_second_head_that_does_not_end_is_given_up_too(address: tuple[str, int]) -> None:
    with connected(address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT")
        first, _, second = received(connection).partition(b"ok")
        assert first.startswith(b"HTTP/1.1 200 ")
        assert error_of(second) == (408, "RequestTimeoutException")


def test_requests_far_ahead_of_the_answers_close_the_connection(address: tuple[str, int]) -> None:
    with connected(address) as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" * (MAX_PIPELINED + 2))
        assert b"200 OK" not in received(connection)
    assert asked(address).endswith(b"ok")


def test_a_client_that_does_not_read_is_given_up(served: Server, address: tuple[str, int]) -> None:
    """Old code: the whole answer was kept for as long as the client liked."""
    with connected(address) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: bool(served.server_state.connections))
        wait_until(lambda: not served.server_state.connections)
        assert len(received(connection)) < LARGE
    answer = asked(address, "/large")
    assert len(answer.partition(b"\r\n\r\n")[2]) == LARGE


def test_a_full_house_of_idle_connections_keeps_nobody_out(address: tuple[str, int]) -> None:
    with ExitStack() as opened:
        for _ in range(3 * MOST):
            opened.enter_context(connected(address))
        for _ in range(5):
            assert asked(address).endswith(b"ok")


def test_when_all_connections_are_busy_only_health_is_asked_for(served: Server, address: tuple[str, int]) -> None:
    with ExitStack() as opened:
        busy = [begun(opened, address) for _ in range(MOST)]
        wait_until(lambda: len(served.server_state.tasks) == MOST)
        assert error_of(asked(address)) == (503, "ServiceUnavailableException")
        assert asked(address, "/health").endswith(b"ok")
        wait_until(lambda: len(served.server_state.connections) == len(served.server_state.tasks) == MOST)
        while len(busy) < MOST + SPARE:
            busy.append(begun(opened, address))
            wait_until(lambda: len(served.server_state.tasks) == len(busy))  # no longer idle
        assert error_of(asked(address, "/health")) == (503, "ServiceUnavailableException")
        GO_ON.set()
        for each in busy:
            assert each.recv(1000).startswith(b"HTTP/1.1 200 ")
        assert asked(address).endswith(b"ok")


def test_bodies_that_never_come_do_not_keep_others_out(address: tuple[str, int]) -> None:
    """Rights: none, not even a token. One address holds all connections, and sends no more of its requests' bodies."""
    with ExitStack() as opened:
        theirs = opened.enter_context(socket.create_connection(address, SOON_S, source_address=("127.0.0.2", 0)))
        assert is_answered(theirs)
        for _ in range(MOST + 4):
            connection = opened.enter_context(connected(address))
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 100 "), "its body is waited for"
        assert is_answered(theirs), "who has one connection keeps it"
        newcomer = opened.enter_context(socket.create_connection(address, SOON_S, source_address=("127.0.0.3", 0)))
        assert is_answered(newcomer)


def is_answered(connection: socket.socket) -> bool:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    answer = b""
    while not answer.endswith(b"ok") and (part := connection.recv(1000)):
        answer += part
    return answer.startswith(b"HTTP/1.1 200 ")


def begun(opened: ExitStack, address: tuple[str, int]) -> socket.socket:
    """A connection with a request about health in progress."""
    connection = opened.enter_context(connected(address))
    connection.sendall(b"GET /health/held HTTP/1.1\r\nHost: a\r\n\r\n")
    return connection


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_upgrade_is_not_taken_and_the_request_answered(address: tuple[str, int]) -> None:
    with connected(address) as connection:
        for protocol in (b"websocket", b"h2c"):
            connection.sendall(
                b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n"
            )
            answer = b""
            while not answer.endswith(b"ok"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
