"""Stands in for `lakewarden <command>` in the tests of the process tree: same commands, same answers, no Django.

STAND_IN_FAIL names a command that fails at once; STAND_IN_SLOW one that takes three seconds; every start is
recorded as a line `<command> <settings as JSON>` in the file STAND_IN_CALLS.
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAREHOUSES: list[dict[str, Any]] = []


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/health":
            self.answer(200, {"status": "up"})
        elif self.path == "/.well-known/openid-configuration":
            host = self.headers["Host"]
            self.answer(200, {"token_endpoint": f"http://{host}/token"})
        elif self.path == "/management/v1/warehouse":
            self.answer(200, {"warehouses": WAREHOUSES})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        record(self.path, {"body": body, "authorization": self.headers.get("Authorization", "")})
        if self.path == "/token":
            self.answer(200, {"access_token": "token-of-admin"})
        elif self.path == "/management/v1/warehouse":
            self.create_warehouse(json.loads(body))
        else:
            self.answer(204, None)

    def create_warehouse(self, body: dict[str, Any]) -> None:
        if os.environ.get("STAND_IN_KNOWN_WAREHOUSE"):
            WAREHOUSES[:] = [
                {"warehouse-id": "w-old", "name": body["warehouse-name"], "storage-profile": body["storage-profile"]}
            ]
            self.answer(409, {"error": {"message": "exists"}})
            return
        self.answer(201, {"warehouse-id": "w-1", "name": "demo", "storage-profile": body["storage-profile"]})

    def answer(self, status: int, content: object) -> None:
        data = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def record(what: str, content: object) -> None:
    with open(os.environ["STAND_IN_CALLS"], "a") as calls:  # noqa: PTH123
        calls.write(f"{what} {json.dumps(content)}\n")


def main(command: str, arguments: list[str]) -> None:
    settings = {name: value for name, value in os.environ.items() if name.startswith("LAKEWARDEN__")}
    record(command, {"arguments": arguments, "settings": settings})
    if os.environ.get("STAND_IN_FAIL") == command:
        sys.exit(f"Error: {command} has been told to fail")
    if os.environ.get("STAND_IN_SLOW") == command:
        time.sleep(3)
    if command == "issuer":
        ThreadingHTTPServer(("127.0.0.1", int(arguments[1])), Answers).serve_forever()
    elif command == "serve":
        port = int(settings["LAKEWARDEN__SERVER__PORT"])
        ThreadingHTTPServer(("127.0.0.1", port), Answers).serve_forever()
    elif command == "work":
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
