"""Stands before a real server and falls ill when a test says so: it refuses, hangs, hangs up, drips, or passes on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Final

from tests.servers.http_threads import serving
from tests.servers.sick_store import Illness

DRIP_S: Final = 0.1
"""Between two bytes of an answer that drips: each alone comes in time."""


@dataclass
class SickFront:
    """`chronic` is for every request that it `concerns`, by method and path; without it all are passed on."""

    url: str
    chronic: Illness | None = None
    drips: bool = False
    concerns: Callable[[str, str], bool] = lambda *_: True
    asked: list[tuple[str, str]] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    """The `traceparent` of each request; empty if it had none."""
    over: Event = field(default_factory=Event)

    def falls_ill(self, illness: Illness | None, *, drips: bool = False) -> None:
        self.chronic, self.drips = illness, drips

    def recovers(self) -> None:
        """Also for the requests that it still holds."""
        self.chronic, self.drips = None, False
        self.over.set()
        self.over = Event()


@contextmanager
def before(target: str) -> Iterator[SickFront]:
    """`target` as "127.0.0.1:9000". What clients have signed stays as it is, their `Host` included."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            front.asked.append((self.command, self.path))
            front.parents.append(self.headers.get("traceparent", ""))
            is_meant = front.concerns(self.command, self.path)
            illness, drips, over = front.chronic, front.drips and is_meant, front.over
            with suppress(OSError):  # who asked may not have waited
                if illness is None or not is_meant:
                    return self._send(*self._passed_on(body), over=over if drips else None)
                if illness.works:
                    self._passed_on(body)
                if illness.hangs:
                    over.wait(60)
                if illness.hangs or illness.resets:
                    self.close_connection = True
                    return None
                said = f"<Error><Code>{illness.code}</Code><Message>{illness.message}</Message></Error>"
                if self.path == "/":  # as a token service says it
                    said = f"<ErrorResponse>{said}</ErrorResponse>"
                return self._send(illness.status, {}, said.encode())

        do_PUT = do_DELETE = do_HEAD = do_POST = do_GET  # noqa: N815 as the library calls them

        def _passed_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = HTTPConnection(target, timeout=60)
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                return answer.status, dict(answer.getheaders()), answer.read()
            finally:
                connection.close()

        def _send(self, status: int, headers: dict[str, str], content: bytes, *, over: Event | None = None) -> None:
            self.send_response_only(status)
            kept = {name: value for name, value in headers.items() if name.lower() not in _OF_A_CONNECTION}
            if self.command != "HEAD" or "Content-Length" not in kept:
                kept["Content-Length"] = str(len(content))
            for name, value in kept.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            if over is None:
                self.wfile.write(content)
                return
            for byte in content:
                self.wfile.write(bytes([byte]))
                if over.wait(DRIP_S):
                    self.close_connection = True
                    return

        def log_message(self, *_: object) -> None:
            """Requests are remembered, not printed."""

    with serving(Handler) as url:
        front = SickFront(url)
        try:
            yield front
        finally:
            front.over.set()


_OF_A_CONNECTION: Final = {"connection", "transfer-encoding", "keep-alive"}
