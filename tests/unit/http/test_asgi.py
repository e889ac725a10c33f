import asyncio
from typing import Any

import pytest

from lakewarden import asgi
from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.http.bridge import environ


def receiver(*messages: dict[str, Any]) -> Any:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    return receive


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_half_a_request_is_not_answered() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/catalog/v1/x", "query_string": b"", "headers": []}
    receive = receiver(part(b'{"namespace": ["a"]}', more=True), {"type": "http.disconnect"})
    asyncio.run(asgi.application(scope, receive, send))
    assert sent == []


def test_headers_that_come_twice_are_joined_and_the_body_gives_the_length() -> None:
    headers = [(b"accept", b"a"), (b"accept", b"b"), (b"content-length", b"999"), (b"content-type", b"text/plain")]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/é",
        "raw_path": b"/%C3%A9?q",
        "query_string": b"q",
    }
    made = environ({**scope, "headers": headers}, b"abc")
    assert made["HTTP_ACCEPT"] == "a,b"
    assert (made["CONTENT_LENGTH"], made["CONTENT_TYPE"]) == ("3", "text/plain")
    assert (made["PATH_INFO"], made["QUERY_STRING"]) == ("/%C3%A9", "q")
    assert "HTTP_CONTENT_LENGTH" not in made


def environ_of(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "method": "GET", "path": "/", "query_string": b""}
    return environ({**scope, "headers": list(headers)}, b"")


def test_a_header_with_an_underscore_does_not_pass_for_the_one_with_a_hyphen() -> None:
    environ = environ_of((b"x_project_id", b"theirs"), (b"x-project-id", b"mine"), (b"x_assume_role", b"any"))
    assert environ["HTTP_X_PROJECT_ID"] == "mine"
    assert "HTTP_X_ASSUME_ROLE" not in environ


def request_with(headers: list[tuple[bytes, bytes]]) -> asgi._Request:
    scope = {"method": "GET", "path": "/catalog/v1/config", "query_string": b"", "headers": headers}
    return asgi._Request.of(scope, receiver())


def test_a_header_that_comes_twice_is_no_business_of_the_hot_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answering(request: HotRequest) -> Answer | None:
        return 200, [], request.headers[b"x-project-id"]

    monkeypatch.setattr(asgi, "HOT_ROUTES", [answering])
    once = [(b"host", b"catalog.test"), (b"x-project-id", b"mine")]
    assert asyncio.run(asgi._hot(request_with(once), b"")) == (200, [], b"mine")
    assert asyncio.run(asgi._hot(request_with(once * 2), b"")) is None


@pytest.mark.parametrize("event", ["startup", "shutdown"])
def test_lifespan_is_completed(event: str) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    messages = [{"type": f"lifespan.{event}"}, {"type": "lifespan.shutdown"}]
    asyncio.run(asgi.application({"type": "lifespan"}, receiver(*messages), send))
    assert sent[0] == f"lifespan.{event}.complete"
