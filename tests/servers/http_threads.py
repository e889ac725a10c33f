"""Serves HTTP by a handler, a thread for each connection, on a free port of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from standalone.ports import HOST


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Clients that do not wait any longer hang up."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Its address, such as `http://127.0.0.1:1234`."""
    server = _Server((HOST, 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
