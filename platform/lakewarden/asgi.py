"""The process's root application: bridges HTTP to Django on a fixed pool of threads.

Paths reach Django percent-encoded as they came, so that an encoded slash in a name is not a separator.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakewarden.settings")
django.setup()

from django.core.handlers.wsgi import WSGIHandler  # noqa: E402 after setup

from lakewarden import config  # noqa: E402 after setup
from lakewarden.audit import refusals  # noqa: E402 after setup
from lakewarden.hot import connections  # noqa: E402 after setup
from lakewarden.hot.routes import Answer, HotRequest  # noqa: E402 after setup
from lakewarden.http.conventions import Cors, Headers, keep_private  # noqa: E402 after setup
from lakewarden.http.recorder import Chore, Recorder  # noqa: E402 after setup
from lakewarden.ids import new_id  # noqa: E402 after setup
from lakewarden.urls import HOT_ROUTES  # noqa: E402 a broken route stops the start, not the first request
from lakewarden.usage import records  # noqa: E402 after setup

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_handler = WSGIHandler()
_settings = config.current().server
_threads = ThreadPoolExecutor(max_workers=_settings.threads, thread_name_prefix="request")
_cors = Cors(_settings.cors_origins)

_LAST_WORDS_S = 10  # what the recorder may take at the end


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1000})
        return
    try:
        body = await _body(receive)
    except ConnectionAbortedError:
        return  # there is nobody to answer, and what came is not what was meant
    path = _raw_path(scope)
    answer = await _hot(scope, path) if body == b"" else None
    if answer is not None:
        status, headers, content = answer
    elif body is None:
        status, headers, content = _too_large()
    elif _cors.is_on and (allowed := _cors.preflight(scope["method"], path, dict(scope["headers"]))) is not None:
        status, headers, content = 204, [*allowed, (b"x-request-id", str(new_id()).encode())], b""
    else:
        status, headers, content = await asyncio.get_running_loop().run_in_executor(_threads, _call, scope, body)
    _complete(scope, path, headers)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _complete(scope: Scope, path: bytes, headers: Headers) -> None:
    """Put on what all answers have in common, whoever gave them."""
    keep_private(path, headers)
    if _cors.is_on:
        _cors.mark(path, dict(scope["headers"]), headers)


async def _hot(scope: Scope, path: bytes) -> Answer | None:
    """The answer of a hot route, or None when the request is Django's."""
    if scope["method"] not in {"GET", "HEAD"} or not path.startswith(b"/catalog/"):
        return None
    headers = dict(scope["headers"])
    if len(headers) != len(scope["headers"]):
        return None  # a header that comes twice means one thing only: what Django makes of it
    request = HotRequest(
        method=scope["method"],
        scheme=scope.get("scheme", "http"),
        path=path,
        query=scope["query_string"],
        headers=headers,
    )
    for route in HOT_ROUTES:
        answer = await route(request)
        if answer is not None:
            return answer
    return None


def _raw_path(scope: Scope) -> bytes:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0]


async def _lifespan(receive: Receive, send: Send) -> None:
    recorder = Recorder(
        [
            Chore("calls", config.current().usage.flush_interval_s, records.flush),
            Chore("refusals", 1, refusals.flush_due, finish=refusals.flush),
        ]
    )
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            recorder.start()
        else:
            await connections.close_all()
            await asyncio.to_thread(recorder.stop, timeout_s=_LAST_WORDS_S)
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None as soon as it is larger than allowed. ConnectionAbortedError when it ends too early."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError
        part = message.get("body", b"")
        size += len(part)
        if size > _settings.max_body_bytes:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _too_large() -> Answer:
    text = f"The request body is larger than {_settings.max_body_bytes} bytes"
    content = f'{{"error":{{"message":"{text}","type":"PayloadTooLargeException","code":413}}}}'.encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
        (b"x-request-id", str(new_id()).encode()),
    ]
    return 413, headers, content


def _call(scope: Scope, body: bytes) -> Answer:
    """Run Django on one request, in a thread of the pool."""
    status = 500
    headers: list[tuple[bytes, bytes]] = []

    def start_response(line: str, fields: list[tuple[str, str]], _error: object = None) -> Callable[[bytes], object]:
        nonlocal status
        status = int(line[:3])
        headers.extend((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields)
        return lambda _data: None

    result: Iterable[bytes] = _handler(_environ(scope, body), start_response)
    try:
        content = b"".join(result)
    finally:
        result.close()  # type: ignore[attr-defined]  # Django's responses have it: it ends the request
    if status not in {204, 304} and not any(name == b"content-length" for name, _ in headers):
        headers.append((b"content-length", str(len(content)).encode()))
    return status, headers, b"" if scope["method"] == "HEAD" else content


def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
    server = scope.get("server") or ("localhost", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": _raw_path(scope).decode("latin-1"),
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
            continue  # it would pass for the one with hyphens, which a proxy may have taken out or checked
        key = name.decode("latin-1").upper().replace("-", "_")
        text = value.decode("latin-1")
        if key == "CONTENT_TYPE":
            environ["CONTENT_TYPE"] = text
        elif key != "CONTENT_LENGTH":
            key = f"HTTP_{key}"
            environ[key] = f"{environ[key]},{text}" if key in environ else text
    return environ
