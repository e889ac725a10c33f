"""Bodies, in parts, as an ASGI server hands them on."""

import asyncio
from typing import Any

import pytest

from lakewarden.config import ServerConfig
from lakewarden.errors import PayloadTooLarge, RequestTimedOut, Unavailable
from lakewarden.fair_shares import Shares
from lakewarden.http.bodies import BodyMemory, IncomingBody

LIMITS = ServerConfig.model_validate(
    {"max_body_bytes": 4000, "small_body_bytes": 1024, "bodies_in_flight_bytes": 1024 * 1024, "body_timeout_s": 0.1}
)
CHUNKED = {b"transfer-encoding": b"chunked"}


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def incoming(headers: dict[bytes, bytes], *messages: dict[str, Any]) -> IncomingBody:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.sleep(60)
        return waiting.pop(0)

    return IncomingBody(receive, headers, LIMITS)


def read(body: IncomingBody, shares: Shares | None = None) -> bytes:
    memory = BodyMemory(shares or Shares(8000, percent=75), "alice")

    async def run() -> bytes:
        await body.read_small()
        await body.read(memory)
        return body.content()

    try:
        return asyncio.run(run())
    finally:
        memory.release()


def test_a_body_in_parts_is_put_together() -> None:
    assert read(incoming({}, part(b"a", more=True), part(b"", more=True), part(b"b"))) == b"ab"


def test_a_body_is_given_up_as_soon_as_it_is_too_large() -> None:
    half = b"x" * 2000
    assert read(incoming(CHUNKED, part(half, more=True), part(half))) == half * 2
    body = incoming(CHUNKED, part(half, more=True), part(half, more=True), part(b"x", more=True))
    with pytest.raises(PayloadTooLarge, match="larger than 4000 bytes"):
        read(body)
    assert not body.is_complete


def test_a_body_that_says_that_it_is_too_large_is_not_read() -> None:
    with pytest.raises(PayloadTooLarge):
        incoming({b"content-length": b"4001"}).ensure_allowed()
    incoming({b"content-length": b"4000"}).ensure_allowed()


@pytest.mark.parametrize("headers", [CHUNKED, {b"content-length": b"3000"}])
def test_no_more_than_a_small_part_is_read_before_the_caller_is_known(headers: dict[bytes, bytes]) -> None:
    body = incoming(headers, *[part(b"x" * 600, more=True)] * 5)
    asyncio.run(body.read_small())
    assert body.size == 1200
    assert not body.is_complete


def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    body = incoming({b"content-length": b"100"}, part(b"x" * 60, more=True))
    with pytest.raises(RequestTimedOut, match="Only 60 bytes of the request's body arrived"):
        read(body)
    assert body.is_late


def test_bodies_in_progress_share_the_memory() -> None:
    shares = Shares(8000, percent=75)
    assert shares.take("bob", 5000)
    with pytest.raises(Unavailable, match="5000 bytes already, 0 of them for you, and 3500 more"):
        read(incoming({b"content-length": b"3500"}, part(b"x" * 3500)), shares)
    assert shares.taken == 5000
    assert len(read(incoming({b"content-length": b"2500"}, part(b"x" * 2500)), shares)) == 2500
    assert shares.taken == 5000


def test_one_caller_cannot_take_all_the_memory() -> None:
    shares = Shares(8000, percent=75)
    memory = BodyMemory(shares, "alice")
    memory.grow(6000)
    with pytest.raises(Unavailable, match="6000 of them for you"):
        memory.grow(1)
    assert shares.take("bob", 2000)
    memory.release()
    assert shares.taken == 2000
