"""A stream of server-sent events from the root application in this process, read as a browser reads it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_connection import AsgiConnection


@dataclass(frozen=True)
class Sent:
    """A block of the stream: an event if it has `text`, otherwise a place to resume, or (without both) a comment."""

    id: str
    text: str
    event: str = "message"

    @property
    def data(self) -> Any:
        return json.loads(self.text) if self.text else None


class AsgiStream(AsgiConnection):
    def __init__(self, path: str, headers: Mapping[str, str]) -> None:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": "GET",
            "server": ("catalog.test", 80),
            "client": ("127.0.0.1", 50000),
        }
        super().__init__(path, {"host": "catalog.test", **headers}, scope)
        self._text = ""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last_id = ""

    def open(self) -> None:
        self.put({"type": "http.request", "body": b"", "more_body": False})
        self.start()
        begun = self.next()
        self.status = begun["status"]
        self.headers = {name.decode(): value.decode("latin-1") for name, value in begun["headers"]}

    def block(self) -> Sent:
        """The next block; fails if the stream has ended."""
        while "\n\n" not in self._text:
            message = self.next()
            assert message.get("more_body"), "the stream has ended"
            # each of the three line breaks counts for a browser
            self._text += message["body"].decode().replace("\r\n", "\n").replace("\r", "\n")
        block, _, self._text = self._text.partition("\n\n")
        pairs = [line.split(": ", 1) for line in block.split("\n") if ": " in line]
        fields = dict(pairs)
        self.last_id = fields.get("id", self.last_id)
        text = "\n".join(value for name, value in pairs if name == "data")
        return Sent(self.last_id, text, fields.get("event", "message"))

    def event(self) -> Sent:
        """The next block with data."""
        while not (found := self.block()).text:
            pass
        return found

    def body(self) -> Any:
        """Of a refusal."""
        return json.loads(self.next()["body"])

    def leave(self) -> None:
        self.read_again()
        self.put({"type": "http.disconnect"})
        self.rest()


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
