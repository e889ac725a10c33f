"""A token endpoint (RFC 6749, client credentials) that gives out a service account's token.

`python -m tests.k8s.token_endpoint ADDRESS PORT FOLDER`: the files `secret` and `token` of the folder are the client's
secret and the token. A program of its own, because it must run where the cluster's addresses are reached.
"""

import hmac
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs


class _Endpoint(BaseHTTPRequestHandler):
    folder: ClassVar[Path]

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        secret = (self.folder / "secret").read_text()
        if form.get("grant_type") == ["client_credentials"] and hmac.compare_digest(
            form.get("client_secret", [""])[0], secret
        ):
            self._answer(
                200,
                {"access_token": (self.folder / "token").read_text(), "token_type": "bearer", "expires_in": 3600},
            )
        else:
            self._answer(401, {"error": "invalid_client"})

    def _answer(self, status: int, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(address: str, port: str, folder: str) -> None:
    _Endpoint.folder = Path(folder)
    ThreadingHTTPServer((address, int(port)), _Endpoint).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
