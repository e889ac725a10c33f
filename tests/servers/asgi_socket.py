"""A WebSocket to the root application in this process: what uvicorn would hand to it, without a network."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.servers.asgi_connection import AsgiConnection


class Refused(AssertionError):
    """The handshake was answered with this status, headers and body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"{status} {body!r}")
        self.status = status
        self.headers = headers
        self.body = body


class AsgiSocket(AsgiConnection):
    """`sent` are dicts or texts, `received` the decoded messages of the server."""

    def __init__(self, path: str, headers: Mapping[str, str], subprotocols: list[str], address: str) -> None:
        scope = {"type": "websocket", "scheme": "ws", "subprotocols": subprotocols, "client": (address, 50000)}
        super().__init__(path, headers, scope)
        self.subprotocol: str | None = None

    def open(self) -> None:
        self.put({"type": "websocket.connect"})
        self.start()
        first = self.next()
        if first["type"] == "websocket.http.response.start":
            body = self.next()["body"]
            headers = {name.decode(): value.decode() for name, value in first["headers"]}
            self.rest()
            raise Refused(first["status"], headers, body)
        if first["type"] == "websocket.close":
            raise Refused(403, {}, b"")
        assert first["type"] == "websocket.accept"
        self.subprotocol = first.get("subprotocol")

    def send(self, message: dict[str, Any] | str) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        self.put({"type": "websocket.receive", "text": text})

    def send_bytes(self, content: bytes) -> None:
        self.put({"type": "websocket.receive", "bytes": content})

    def ask(self, message: dict[str, Any] | str) -> dict[str, Any]:
        self.send(message)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """The next message; fails if the server has closed instead."""
        found = self.next()
        assert found["type"] == "websocket.send", found
        return dict(json.loads(found["text"]))

    def closed(self) -> tuple[int, str]:
        """Code and reason; fails if there is a message before."""
        found = self.next()
        assert found["type"] == "websocket.close", found
        self.rest()
        return found["code"], found.get("reason", "")

    def disconnect(self) -> None:
        self.put({"type": "websocket.disconnect", "code": 1000})
        self.rest()


@contextmanager
def opened(
    caller: str | None = "engine",
    path: str = "/lakehouse/ws",
    *,
    subprotocols: list[str] | None = None,
    address: str = "127.0.0.1",
    **headers: str,
) -> Iterator[AsgiSocket]:
    """An accepted socket; raises Refused."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if caller is not None:
        given["authorization"] = f"Bearer {caller}"
    socket = AsgiSocket(path, given, subprotocols or [], address)
    socket.open()
    try:
        yield socket
    finally:
        if not socket.has_ended():
            socket.disconnect()
