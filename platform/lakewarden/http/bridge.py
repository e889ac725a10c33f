"""Runs Django on one request, in a thread; called by asgi.py."""

from collections.abc import Callable, Iterable, MutableMapping
from io import BytesIO
from typing import Any

from django.core.handlers.wsgi import WSGIHandler

from lakewarden.database import begin_request
from lakewarden.hot.routes import Answer
from lakewarden.http.bodies import BodyMemory
from lakewarden.http.event_pages import PAGE

MEMORY = "lakewarden.body-memory"
"""The key in `HttpRequest.META` of the request's `BodyMemory`."""

Scope = MutableMapping[str, Any]


class Bridge:
    def __init__(self) -> None:
        self._handler = WSGIHandler()

    def call(self, scope: Scope, body: bytes, memory: BodyMemory) -> Answer:
        begin_request()  # resets the thread's flag for commits, which may still be set by the request before
        status = 500
        headers: list[tuple[bytes, bytes]] = []

        def start_response(
            line: str, fields: list[tuple[str, str]], _error: object = None
        ) -> Callable[[bytes], object]:
            nonlocal status
            status = int(line[:3])
            headers.extend((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields)
            return lambda _data: None

        given = environ(scope, body) | {MEMORY: memory, PAGE: scope.get(PAGE)}
        result: Iterable[bytes] = self._handler(given, start_response)
        try:
            content = b"".join(result)
        finally:
            result.close()  # type: ignore[attr-defined]  # Django's responses have `close`, which ends the request
        if status not in {204, 304} and not any(name == b"content-length" for name, _ in headers):
            headers.append((b"content-length", str(len(content)).encode()))
        return status, headers, b"" if scope["method"] == "HEAD" else content


def raw_path(scope: Scope) -> bytes:
    """The path as the client sent it, percent-encoded, without the query."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0]


def environ(scope: Scope, body: bytes) -> dict[str, Any]:
    server = scope.get("server") or ("localhost", 0)
    made: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": raw_path(scope).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": (scope.get("client") or ("", 0))[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": BytesIO(body),
        "wsgi.errors": BytesIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(len(body)),
    }
    for name, value in scope["headers"]:
        if b"_" in name:
            # WSGI cannot distinguish it from the header with hyphens, which a proxy may have removed or checked
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        text = value.decode("latin-1")
        if key == "CONTENT_TYPE":
            made["CONTENT_TYPE"] = text
        elif key != "CONTENT_LENGTH":
            key = f"HTTP_{key}"
            made[key] = f"{made[key]},{text}" if key in made else text
    return made
