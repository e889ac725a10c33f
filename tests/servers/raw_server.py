"""A server that answers requests of HTTP by writing bytes as a test wants them: late, endless, or elsewhere."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

from standalone.ports import HOST


@dataclass
class Connection:
    """One request, whose head is `head`; `send` raises OSError once the client has hung up."""

    sock: socket.socket
    head: str
    over: Event

    @property
    def path(self) -> str:
        return self.head.split(" ", 2)[1]

    def send(self, *parts: bytes, pause_s: float = 0) -> None:
        for part in parts:
            self.sock.sendall(part)
            if pause_s and self.over.wait(pause_s):
                raise ConnectionAbortedError

    def answer(self, body: str | bytes = b"", *, status: str = "200 OK", **headers: str) -> None:
        content = body.encode() if isinstance(body, str) else body
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", "Connection: close", *lines])
        self.send(f"{head}\r\n\r\n".encode(), content)


@dataclass
class RawServer:
    url: str
    answer: Callable[[Connection], None] = lambda connection: connection.answer()
    asked: list[str] = field(default_factory=list)
    over: Event = field(default_factory=Event)


@contextmanager
def start() -> Iterator[RawServer]:
    with socket.create_server((HOST, 0)) as listening:
        server = RawServer(f"http://{HOST}:{listening.getsockname()[1]}")
        listening.settimeout(0.05)
        threads = [Thread(target=_accept, args=(listening, server))]
        threads[0].start()
        try:
            yield server
        finally:
            server.over.set()
            threads[0].join()


def _accept(listening: socket.socket, server: RawServer) -> None:
    threads = []
    while not server.over.is_set():
        with suppress(TimeoutError):
            accepted, _ = listening.accept()
            threads.append(Thread(target=_serve, args=(accepted, server)))
            threads[-1].start()
    for thread in threads:
        thread.join()


def _serve(accepted: socket.socket, server: RawServer) -> None:
    with accepted, suppress(OSError):
        accepted.settimeout(30)
        head = b""
        while b"\r\n\r\n" not in head:
            more = accepted.recv(65536)
            if not more:
                return
            head += more
        text = head.partition(b"\r\n\r\n")[0].decode()
        server.asked.append(text.split(" HTTP", 1)[0])
        server.answer(Connection(accepted, text, server.over))
        accepted.shutdown(socket.SHUT_WR)
        while accepted.recv(65536):  # what the client still sends, so that it is not refused before it has read
            pass
