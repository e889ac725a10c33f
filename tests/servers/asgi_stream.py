"""A stream of server-sent events from the root application in this process, read as a browser reads it."""

import asyncio
import json
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.servers.asgi_client import AsgiClient, _loop, run

PATIENCE_S = 20


@dataclass(frozen=True)
class Sent:
    """A block of the stream: an event if it has `data`, otherwise a place to resume, or (without both) a comment."""

    id: str
    data: Any
    event: str = "message"


class AsgiStream:
    def __init__(self, path: str, headers: Mapping[str, str]) -> None:
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        self._text = ""
        self._reading = asyncio.Event()
        self._reading.set()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last_id = ""
        raw, _, query = path.partition("?")
        given = {"host": "catalog.test", **headers}
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": "GET",
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()],
            "server": ("catalog.test", 80),
            "client": ("127.0.0.1", 50000),
        }

    def open(self) -> None:
        self._task = asyncio.run_coroutine_threadsafe(self._serve(), _loop())
        start = self._next()
        self.status = start["status"]
        self.headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}

    def block(self) -> Sent:
        """The next block; fails if the stream has ended."""
        while "\n\n" not in self._text:
            message = self._next()
            assert message.get("more_body"), "the stream has ended"
            self._text += message["body"].decode()
        block, _, self._text = self._text.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        self.last_id = fields.get("id", self.last_id)
        data = fields.get("data")
        return Sent(self.last_id, None if data is None else json.loads(data), fields.get("event", "message"))

    def event(self) -> Sent:
        """The next block with data."""
        while (found := self.block()).data is None:
            pass
        return found

    def body(self) -> Any:
        """Of a refusal."""
        return json.loads(self._next()["body"])

    def has_ended(self) -> bool:
        return self._task.done()

    def rest(self) -> None:
        """Until the stream ends."""
        self._task.result(PATIENCE_S)

    def stop_reading(self) -> None:
        _loop().call_soon_threadsafe(self._reading.clear)

    def leave(self) -> None:
        _loop().call_soon_threadsafe(self._reading.set)
        _loop().call_soon_threadsafe(self._incoming.put_nowait, {"type": "http.disconnect"})
        self._task.result(PATIENCE_S)

    def _next(self) -> dict[str, Any]:
        return run(asyncio.wait_for(self._outgoing.get(), PATIENCE_S))

    async def _serve(self) -> None:
        from lakewarden.asgi import application  # noqa: PLC0415 it reads the configuration when it is imported

        await application(self._scope, self._incoming.get, self._send)

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self._reading.wait()
        self._outgoing.put_nowait(dict(message))


@contextmanager
def streamed(client: AsgiClient, path: str, **headers: str) -> Iterator[AsgiStream]:
    """A stream, or its refusal (`status`)."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    stream = AsgiStream(path, {**client.headers, "accept": "text/event-stream", **given})
    stream.open()
    try:
        yield stream
    finally:
        if not stream.has_ended():
            stream.leave()
