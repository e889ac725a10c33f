"""A small S3 store that falls ill when a test says so: it refuses, hangs, hangs up, or answers badly after the work."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from tests.servers.http_threads import serving


@dataclass(frozen=True)
class Illness:
    """What happens instead of one answer. `works`: the request has its effect all the same."""

    status: int = 503
    code: str = "SlowDown"
    works: bool = False
    hangs: bool = False
    resets: bool = False
    message: str = "The request was AWS4-HMAC-SHA256 signed"


@dataclass
class SickStore:
    """`objects` by path ("/bucket/key"); `illnesses` are used up one by one, `chronic` is for every request.

    `on` is for every request with a method.
    """

    url: str
    objects: dict[str, bytes] = field(default_factory=dict)
    illnesses: deque[Illness] = field(default_factory=deque)
    chronic: Illness | None = None
    on: dict[str, Illness] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def next_illness(self, method: str) -> Illness | None:
        return self.illnesses.popleft() if self.illnesses else self.on.get(method, self.chronic)

    def put(self, path: str, content: bytes, *, is_new: bool) -> tuple[int, str]:
        if is_new and path in self.objects:
            return 412, "PreconditionFailed"
        self.objects[path] = content
        return 200, ""

    def remove(self, bucket: str, body: bytes) -> bytes:
        for key in re.findall("<Key>(.*?)</Key>", body.decode()):
            self.objects.pop(f"{bucket}/{unescape(key)}", None)
        return b"<DeleteResult></DeleteResult>"

    def listing(self, bucket: str, prefix: str) -> bytes:
        start = f"/{bucket}/"
        keys = [each.removeprefix(start) for each in sorted(self.objects) if each.startswith(start + prefix)]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00Z</LastModified>"
            f'<ETag>"e"</ETag><Size>{len(self.objects[start + key])}</Size></Contents>'
            for key in keys
        )
        body = f"<ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        return body.encode()


@contextmanager
def start() -> Iterator[SickStore]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve()

        do_PUT = do_DELETE = do_HEAD = do_POST = do_GET  # noqa: N815 as the library calls them

        def _serve(self) -> None:
            path, body = self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0))
            store.asked.append((self.command, path))
            illness = store.next_illness(self.command)
            if illness is None or illness.works:
                status, content = self._work(path, body)
            if illness is None:
                return self._answer(status, content)
            if illness.hangs:
                store.over.wait(30)
            if illness.hangs or illness.resets:
                self.close_connection = True
                return None
            return self._answer(illness.status, _error(illness.code, illness.message))

        def _work(self, path: str, body: bytes) -> tuple[int, bytes]:
            parts = urlsplit(path)
            place = unquote(parts.path)
            if self.command == "PUT":
                status, code = store.put(place, body, is_new=self.headers.get("If-None-Match") == "*")
                return status, _error(code) if code else b""
            if self.command == "DELETE":
                store.objects.pop(place, None)
                return 204, b""
            if self.command == "POST" and parts.query.startswith("delete"):
                return 200, store.remove(place, body)
            if "list-type" in parts.query:
                prefix = parse_qs(parts.query).get("prefix", [""])[0]
                return 200, store.listing(place.strip("/"), prefix)
            found = store.objects.get(place)
            return (404, _error("NoSuchKey")) if found is None else (200, found)

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", '"e"')
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Requests are remembered, not printed."""

    with serving(Handler) as url:
        store = SickStore(url)
        try:
            yield store
        finally:
            store.over.set()


def _error(code: str, message: str = "") -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
