"""Stands for services of clouds that have no emulator, or whose emulator does not fail when a test needs it."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from urllib.parse import parse_qs, urlsplit

from standalone.ports import HOST


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: str

    @property
    def form(self) -> dict[str, str]:
        return {name: value for name, (value,) in parse_qs(self.body, strict_parsing=True).items()}


@dataclass(frozen=True)
class Answer:
    body: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class CloudStub:
    """Answers each path with the next of its answers; the last one again and again."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, deque[Answer]] = field(default_factory=dict)
    silent: Event = field(default_factory=Event)
    """While it is set, nothing is answered."""
    over: Event = field(default_factory=Event)

    def answer(self, path: str, *answers: Answer) -> None:
        self.answers[path] = deque(answers)

    def reply(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        waiting = self.answers.get(asked.path)
        if not waiting:
            return Answer("", 404)
        return waiting.popleft() if len(waiting) > 1 else waiting[0]


@contextmanager
def start() -> Iterator[CloudStub]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply()

        def do_HEAD(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def do_DELETE(self) -> None:
            self._reply()

        def log_message(self, *_: object) -> None:
            pass

        def _reply(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            while stub.silent.is_set() and not stub.over.wait(0.01):
                pass
            answer = stub.reply(Asked(self.command, parts.path, query, dict(self.headers.items()), body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body.encode())))
            with suppress(ConnectionError):  # who asked may not have waited
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body.encode())

    server = ThreadingHTTPServer((HOST, 0), Handler)
    stub = CloudStub(f"http://{HOST}:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield stub
    finally:
        stub.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
