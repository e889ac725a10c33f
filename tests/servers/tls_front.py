"""A small proxy that ends TLS in front of a server, as ingresses do: it calls the server without TLS."""

import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from standalone.ports import HOST
from tests.servers.certificates import Certificates

_TIMEOUT_S = 30
_HOP = {"connection", "transfer-encoding", "content-length"}


@contextmanager
def front(target: str, certificates: Certificates, *, tells: bool) -> Iterator[str]:
    """Its address. `tells`: it sends `x-forwarded-…`, and the host of the server itself as `host`."""
    backend = urlsplit(target).netloc

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on()

        def do_POST(self) -> None:
            self._pass_on()

        def _pass_on(self) -> None:
            headers = dict(self.headers.items())
            if tells:
                told = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": headers["Host"]}
                headers |= {**told, "X-Forwarded-For": self.client_address[0], "Host": backend}
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            connection = http.client.HTTPConnection(backend, timeout=_TIMEOUT_S)
            try:
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                self._answer(answer.status, answer.headers, answer.read())
            finally:
                connection.close()

        def _answer(self, status: int, headers: http.client.HTTPMessage, content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://{HOST}:{server.server_port}"
        server.shutdown()
        thread.join(_TIMEOUT_S)
