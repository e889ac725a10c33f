"""A served application on a socket: heads that are too large or never end."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from lakewarden.http.connection import MAX_HEADER_BYTES, BoundedConnection


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(echo, http=BoundedConnection, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(10)


def test_a_head_that_grows_past_the_limit_is_refused_and_the_connection_closed(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ")
        answer = b""
        try:
            for _ in range(40):
                connection.sendall(b"a" * 8192)
                time.sleep(0.005)
        except OSError:
            pass  # it closed the connection while we were still writing
        while part := _received(connection):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert json.loads(body)["error"]["type"] == "HeadersTooLargeException"


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_large_bodies_and_many_requests_on_a_connection_are_no_head(address: tuple[str, int]) -> None:
    body = b"b" * (3 * MAX_HEADER_BYTES)
    with socket.create_connection(address, timeout=10) as connection:
        for _ in range(3):
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            answer = b""
            while not answer.endswith(b"ok"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
