"""A WebSocket to the root application in this process: what uvicorn would hand to it, without a network."""

import asyncio
import json
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from tests.servers.asgi_client import _loop, run

PATIENCE_S = 20


class Refused(AssertionError):
    """The handshake was answered with this status, headers and body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"{status} {body!r}")
        self.status = status
        self.headers = headers
        self.body = body


class AsgiSocket:
    """`sent` are dicts or texts, `received` the decoded messages of the server."""

    def __init__(self, path: str, headers: Mapping[str, str], subprotocols: list[str], address: str) -> None:
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reading = asyncio.Event()
        self._reading.set()
        raw, _, query = path.partition("?")
        self._scope: dict[str, Any] = {
            "type": "websocket",
            "scheme": "ws",
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
            "subprotocols": subprotocols,
            "client": (address, 50000),
        }
        self.subprotocol: str | None = None

    def open(self) -> None:
        self.put({"type": "websocket.connect"})
        self._task = asyncio.run_coroutine_threadsafe(self._serve(), _loop())
        first = self.next()
        if first["type"] == "websocket.http.response.start":
            body = self.next()["body"]
            headers = {name.decode(): value.decode() for name, value in first["headers"]}
            self._task.result(PATIENCE_S)
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
        self._task.result(PATIENCE_S)
        return found["code"], found.get("reason", "")

    def stop_reading(self) -> None:
        """From now on the server's messages are not taken from it."""
        _loop().call_soon_threadsafe(self._reading.clear)

    def put(self, message: dict[str, Any]) -> None:
        _loop().call_soon_threadsafe(self._incoming.put_nowait, message)

    def next(self) -> dict[str, Any]:
        return run(asyncio.wait_for(self._outgoing.get(), PATIENCE_S))

    def waiting(self) -> int:
        """How many of the client's messages the server has not taken."""

        async def count() -> int:
            return self._incoming.qsize()

        return run(count())

    def disconnect(self) -> None:
        self.put({"type": "websocket.disconnect", "code": 1000})
        self._task.result(PATIENCE_S)

    async def _serve(self) -> None:
        from lakewarden.asgi import application  # noqa: PLC0415 it reads the configuration when it is imported

        await application(self._scope, self._incoming.get, self._send)

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self._reading.wait()
        self._outgoing.put_nowait(dict(message))


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
        if not socket._task.done():
            socket.disconnect()
