"""A verifier of data contracts over HTTP, as others would write one: it checks the signature by itself."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "a secret of sixteen or more"
Say = Callable[[dict[str, Any]], tuple[int, bytes]]


def allow(_asked: dict[str, Any]) -> tuple[int, bytes]:
    return 200, b'{"decision": "allow"}'


def deny(_asked: dict[str, Any]) -> tuple[int, bytes]:
    return 200, json.dumps({"decision": "deny", "reasons": ["no column may be called so", "ask first"]}).encode()


@dataclass
class Verifier:
    """`say` decides; while `free` is not set, it does not answer."""

    say: Say = allow
    asked: list[dict[str, Any]] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    """The `traceparent` of each request; empty if it had none."""
    free: threading.Event = field(default_factory=threading.Event)
    url: str = ""
    unsigned: int = 0


@contextmanager
def running() -> Iterator[Verifier]:
    found = Verifier()
    found.free.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
            expected = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
            found.unsigned += self.headers["webhook-signature"] != f"v1,{expected}"
            found.parents.append(self.headers.get("traceparent", ""))
            found.asked.append(json.loads(body))
            found.free.wait(60)
            status, answer = found.say(found.asked[-1])
            try:
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", found.url)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                pass  # nobody waits any more

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}/verify?tenant=a"
    try:
        yield found
    finally:
        found.free.set()
        server.shutdown()
        thread.join(10)
        server.server_close()
