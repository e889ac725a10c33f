"""Stands in for `minio` in the tests of the process tree: it is healthy, and every bucket is there."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.do_HEAD()

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    address = sys.argv[sys.argv.index("--address") + 1]
    host, _, port = address.partition(":")
    ThreadingHTTPServer((host, int(port)), Answers).serve_forever()
