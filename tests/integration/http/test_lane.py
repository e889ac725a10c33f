"""The short way of hot reads on a socket: what takes it, what leaves it, and in which order answers come."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lakewarden import config
from lakewarden.hot.routes import Answer, HotRequest, Repeat
from lakewarden.http.answers import PIECE
from lakewarden.http.lane import TRIED, Headers
from lakewarden.http.repeats import Repeats
from tests.integration.http.served_here import ServedHere

_PATIENCE_S = 15


class Application:
    """Says which way a request came. `lane` answers what is below `/catalog/hot`, and is as slow as `held` says."""

    def __init__(self) -> None:
        self.lane = self
        self.repeats = Repeats(0, percent=100)
        self.held = threading.Event()

    def request(self, method: bytes, target: bytes, headers: Headers, *, scheme: str, client: str) -> HotRequest:
        assert (scheme, client) == ("http", "127.0.0.1")
        path, _, query = target.partition(b"?")
        return HotRequest(method.decode(), scheme, path, query, dict(headers))

    def may_repeat(self) -> bool:
        return False

    def again(self, repeat: Repeat, looking: asyncio.Future[Any] | None) -> Any:
        raise NotImplementedError

    async def answer(self, request: HotRequest) -> Answer | None:
        name = request.path.rpartition(b"/")[2]
        if name == b"held":
            await asyncio.to_thread(self.held.wait, _PATIENCE_S)
        if name == b"broken":
            raise RuntimeError(name)
        if name == b"left":
            return None
        content = b"x" * (PIECE + 1) if name == b"large" else b"lane " + request.query
        return 200, [(b"content-length", b"%d" % len(content))], content

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        while (await receive()).get("more_body"):
            pass
        tried = {TRIED: "not tried"} | scope
        path, query = scope["path"], scope["query_string"].decode()
        made = tried[TRIED][2] if isinstance(tried[TRIED], tuple) else f"{path} {query} {tried[TRIED]}".encode()
        headers = [(b"content-length", str(len(made)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": made})


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def client(application: Application) -> Iterator[socket.socket]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = ServedHere(config.current().server, application=application)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        with socket.create_connection(listener.getsockname(), timeout=_PATIENCE_S) as connection:
            yield connection
    finally:
        application.held.set()
        server.should_exit = True
        thread.join(_PATIENCE_S)


def request(target: str, *further: str, method: str = "GET", body: str = "") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: a", *further, "", body]).encode()


def answers(client: socket.socket, number: int) -> list[bytes]:
    """The bodies of so many answers, in the order in which they come."""
    received = b""
    bodies: list[bytes] = []
    while len(bodies) < number:
        head, end, rest = received.partition(b"\r\n\r\n")
        if end:
            assert head.startswith(b"HTTP/1.1 200 OK\r\ndate: "), head
            size = int(head.rpartition(b"content-length: ")[2].split(b"\r\n")[0])
            if len(rest) >= size:
                bodies.append(rest[:size])
                received = rest[size:]
                continue
        part = client.recv(1 << 20)
        assert part, f"the connection was closed after {received[:200]!r}"
        received += part
    assert not received
    return bodies


def asked(client: socket.socket, *requests: bytes) -> list[bytes]:
    client.sendall(b"".join(requests))
    return answers(client, len(requests))


def test_a_read_is_answered_on_the_lane_again_and_again(client: socket.socket) -> None:
    for number in range(3):
        assert asked(client, request(f"/catalog/hot?{number}")) == [b"lane %d" % number]


@pytest.mark.parametrize(
    "sent",
    [
        request("/management/hot"),
        request("/catalog/hot", "Content-Length: 2", method="POST", body="{}"),
        request("/catalog/hot", "Expect: 100-continue"),
        request("/catalog/hot", "Connection: Upgrade", "Upgrade: h2c"),
    ],
)
def test_all_others_do_not_take_it(client: socket.socket, sent: bytes) -> None:
    client.sendall(sent)
    body = answers(client, 1)[0] if b"Expect" not in sent else client.recv(4096)
    assert b"lane" not in body
    assert b"not tried" in body or b"100 Continue" in body


def test_what_the_lane_leaves_goes_on_as_it_came_and_is_not_tried_twice(client: socket.socket) -> None:
    assert asked(client, request("/catalog/a%20b/left?x=%20")) == [b"/catalog/a b/left x=%20 None"]


def test_what_fails_on_the_lane_is_tried_on_the_ordinary_path(client: socket.socket) -> None:
    assert asked(client, request("/catalog/broken")) == [b"/catalog/broken  not tried"]


def test_a_large_answer_is_sent_in_pieces_by_others(client: socket.socket) -> None:
    assert asked(client, request("/catalog/large"), request("/catalog/hot?after")) == [
        b"x" * (PIECE + 1),
        b"/catalog/hot after not tried",  # it came while another one was in progress
    ]


def test_answers_come_in_the_order_of_the_requests(client: socket.socket, application: Application) -> None:
    """Those that were sent before the first was answered wait for it, and take no lane."""
    names = ["held?1", "left?2", "hot?3", "hot?4"]
    client.sendall(b"".join(request(f"/catalog/{name}") for name in names))
    application.held.set()
    assert answers(client, 4) == [
        b"lane 1",
        b"/catalog/left 2 not tried",
        b"/catalog/hot 3 not tried",
        b"/catalog/hot 4 not tried",
    ]
    assert asked(client, request("/catalog/hot?5")) == [b"lane 5"]


def test_what_is_left_while_others_wait_keeps_its_turn(client: socket.socket) -> None:
    assert asked(client, request("/catalog/left?1"), request("/catalog/hot?2")) == [
        b"/catalog/left 1 None",
        b"/catalog/hot 2 not tried",
    ]


def test_a_connection_that_is_to_end_after_its_answer_does(client: socket.socket) -> None:
    client.sendall(request("/catalog/hot", "Connection: close"))
    received = b""
    while part := client.recv(4096):
        received += part
    assert b"connection: close" in received
    assert received.endswith(b"not tried")


def test_a_client_that_goes_away_harms_nobody(client: socket.socket, application: Application) -> None:
    address = client.getpeername()
    with socket.create_connection(address, timeout=_PATIENCE_S) as other:
        other.sendall(request("/catalog/held"))
    application.held.set()
    assert asked(client, request("/catalog/hot?still")) == [b"lane still"]


def test_a_request_target_that_is_not_ascii_is_refused(client: socket.socket) -> None:
    client.sendall(b"GET /catalog/\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
