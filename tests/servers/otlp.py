"""Receives OTLP over HTTP as a collector does: `with start() as collector`; decodes the protobuf."""

import gzip
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from standalone.ports import HOST

_PATIENCE_S = 90.0


@dataclass(frozen=True)
class Received:
    """A span; ids in hex, `parent` is empty at the root of the trace."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    failed: bool
    attributes: Mapping[str, str | int]
    resource: Mapping[str, str | int]


@dataclass
class Collector:
    url: str
    spans: list[Received] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = _plain(resource.resource.attributes)
            for scope in resource.scope_spans:
                for span in scope.spans:
                    ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                    failed = span.status.code == span.status.STATUS_CODE_ERROR
                    self.spans.append(Received(span.name, *ids, span.kind, failed, _plain(span.attributes), about))

    def eventually(self, holds: Callable[[Received], bool]) -> Received:
        """The first span for which `holds`, when it has come."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            for each in list(self.spans):
                if holds(each):
                    return each
            time.sleep(0.05)
        raise AssertionError([each.name for each in self.spans])

    def trace(self, identifier: str) -> list[Received]:
        return [each for each in self.spans if each.trace == identifier]


@contextmanager
def start() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            is_packed = self.headers.get("content-encoding") == "gzip"
            assert self.headers["content-type"] == "application/x-protobuf"
            collector.headers.append({name.lower(): value for name, value in self.headers.items()})
            collector.take(gzip.decompress(body) if is_packed else body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    collector = Collector(f"http://{HOST}:{server.server_address[1]}/v1/traces")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _plain(attributes: object) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    for each in attributes:  # type: ignore[attr-defined]  # protobuf's repeated fields have no types
        value = each.value
        found[each.key] = getattr(value, value.WhichOneof("value"))
    return found
