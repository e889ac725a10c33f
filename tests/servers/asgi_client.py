"""Calls the server's root application in this process, synchronously, as an HTTP client would see it."""

import asyncio
import json as json_codec
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """`headers` have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json_codec.loads(self.body)

    def error(self) -> tuple[int, str]:
        """Status and error type; fails when the answer is not in the error model's shape."""
        told = self.json()["error"]
        assert told["code"] == self.status
        assert told["message"]
        return self.status, told["type"]

    def message(self) -> str:
        return str(self.json()["error"]["message"])


@dataclass
class AsgiClient:
    """`call` takes a path as it stands in a URL (with its query); `json` or `body` is sent."""

    headers: Mapping[str, str] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        content = body if body is not None else b"" if json is None else json_codec.dumps(json).encode()
        sent = {"host": "catalog.test", **self.headers, **(headers or {})}
        if json is not None:
            sent.setdefault("content-type", "application/json")
        return run(_call(method, path, sent, content))

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def head(self, path: str, **options: Any) -> Answer:
        return self.call("HEAD", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> Answer:
        return self.call("POST", path, json=json, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.call("DELETE", path, **options)

    def as_user(self, token: str) -> "AsgiClient":
        """The same client with a bearer token."""
        return AsgiClient({**self.headers, "authorization": f"Bearer {token}"})


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One event loop for all calls of all threads, as in a server."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="asgi-client", daemon=True).start()
    return loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """What it returns, on the event loop of all calls: the application's sessions belong to it."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result(60)


async def _call(method: str, path: str, headers: Mapping[str, str], content: bytes) -> Answer:
    from lakewarden.asgi import application  # noqa: PLC0415 it reads the configuration when it is imported

    raw_path, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": raw_path,
        "raw_path": quote(raw_path, safe="/%:@!$&'()*+,;=~").encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
        "server": ("catalog.test", 80),
        "client": ("127.0.0.1", 50000),
    }
    messages: list[Any] = []
    arriving: list[dict[str, Any]] = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not arriving:
            await asyncio.Event().wait()  # the client stays
        return arriving.pop()

    async def send(message: Any) -> None:
        messages.append(message)

    await application(scope, receive, send)
    start = messages[0]
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return Answer(start["status"], {name.decode(): value.decode("latin-1") for name, value in start["headers"]}, body)


def close_connections() -> None:
    """Close the database connections of the application's threads, so that nothing is left open at the end."""
    from django.db import connections  # noqa: PLC0415 needs settings

    from lakewarden.hot.connections import close_all  # noqa: PLC0415 it reads the configuration when it is imported
    from lakewarden.http import health, request_threads  # noqa: PLC0415 as above

    run(close_all())
    run(health.DATABASE.close())
    count = len(request_threads.THREADS.executor._threads)
    together = threading.Barrier(count) if count else None

    def close() -> None:
        assert together is not None
        together.wait(10)  # one task a thread
        connections.close_all()

    for done in [request_threads.THREADS.executor.submit(close) for _ in range(count)]:
        done.result(60)
