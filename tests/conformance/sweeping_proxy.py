"""An HTTP proxy between the kit and the server that sweeps up after dropped tables.

The kit drops its tables without purge and creates the next ones at the same fixed places, which our catalog refuses
while files lie there. Requests and answers pass unchanged; the files of a table that was dropped are removed before
the kit hears of it.
"""

import gzip
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

FIXED_PLACES = (Path("/tmp/ns"), Path("/tmp/newdb"))
"""The kit's own folders below `/tmp`, where its tables with a location of their own lie."""

_DROPPED = 204


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: str

    def _pass_on(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        swept = self._table_folder() if self.command == "DELETE" and "/tables/" in self.path else None
        answer, content = self._ask(self.command, body)
        if swept is not None and answer.status == _DROPPED:
            shutil.rmtree(swept)
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() != "transfer-encoding":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_DELETE = _pass_on  # noqa: N815 the base class calls them so

    def _ask(self, method: str, body: bytes = b"") -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection(self.upstream)
        try:
            connection.request(method, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def _table_folder(self) -> Path | None:
        """Where the table of this request lies, if that is one of the kit's fixed places."""
        answer, content = self._ask("GET")
        if answer.status != 200:
            return None
        if answer.headers.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        folder = Path(urlsplit(json.loads(content)["metadata"]["location"]).path)
        return folder if any(place in folder.parents for place in FIXED_PLACES) and folder.exists() else None

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def sweeping(upstream: str) -> Iterator[str]:
    """`host:port` of a proxy to the server at `upstream`, which is the same."""
    handler = type("Handler", (_Handler,), {"upstream": upstream})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
