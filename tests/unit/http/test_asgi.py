import asyncio
from typing import Any

import pytest

from lakewarden import asgi
from lakewarden.hot.routes import Answer, HotRequest


def receiver(*messages: dict[str, Any]) -> Any:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    return receive


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_in_parts_is_put_together() -> None:
    assert asyncio.run(asgi._body(receiver(part(b"a", more=True), part(b"", more=True), part(b"b")))) == b"ab"


def test_a_body_is_given_up_as_soon_as_it_is_too_large() -> None:
    half = b"x" * (asgi._settings.max_body_bytes // 2)
    assert asyncio.run(asgi._body(receiver(part(half, more=True), part(half)))) == half * 2
    assert (
        asyncio.run(asgi._body(receiver(part(half, more=True), part(half, more=True), part(b"x", more=True)))) is None
    )


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
    environ = asgi._environ({**scope, "headers": headers}, b"abc")
    assert environ["HTTP_ACCEPT"] == "a,b"
    assert (environ["CONTENT_LENGTH"], environ["CONTENT_TYPE"]) == ("3", "text/plain")
    assert (environ["PATH_INFO"], environ["QUERY_STRING"]) == ("/%C3%A9", "q")
    assert "HTTP_CONTENT_LENGTH" not in environ


def environ_of(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": "/", "query_string": b""}
    return asgi._environ({**scope, "headers": list(headers)}, b"")


def test_a_header_with_an_underscore_does_not_pass_for_the_one_with_a_hyphen() -> None:
    environ = environ_of((b"x_project_id", b"theirs"), (b"x-project-id", b"mine"), (b"x_assume_role", b"any"))
    assert environ["HTTP_X_PROJECT_ID"] == "mine"
    assert "HTTP_X_ASSUME_ROLE" not in environ


def test_a_header_that_comes_twice_is_no_business_of_the_hot_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answering(request: HotRequest) -> Answer | None:
        return 200, [], request.headers[b"x-project-id"]

    monkeypatch.setattr(asgi, "HOT_ROUTES", [answering])
    once = [(b"x-project-id", b"mine")]
    scope = {"method": "GET", "query_string": b""}
    assert asyncio.run(asgi._hot({**scope, "headers": once}, b"/catalog/v1/config")) == (200, [], b"mine")
    assert asyncio.run(asgi._hot({**scope, "headers": once * 2}, b"/catalog/v1/config")) is None


@pytest.mark.parametrize("event", ["startup", "shutdown"])
def test_lifespan_is_completed(event: str) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    messages = [{"type": f"lifespan.{event}"}, {"type": "lifespan.shutdown"}]
    asyncio.run(asgi.application({"type": "lifespan"}, receiver(*messages), send))
    assert sent[0] == f"lifespan.{event}.complete"
