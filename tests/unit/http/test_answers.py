"""Large answers: sent piece by piece, with turns for other requests between the pieces."""

import asyncio
from typing import Any

from lakewarden.config import ServerConfig
from lakewarden.fair_shares import Shares
from lakewarden.http.answers import Unread
from lakewarden.http.bodies import IncomingBody


async def nothing() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


def test_a_client_that_reads_fast_does_not_hold_up_others() -> None:
    turns: list[str] = []
    content = bytes(range(256)) * 4096  # 1 MiB
    received: list[bytes] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            turns.append("piece")
            received.append(bytes(message["body"]))

    async def others() -> None:
        for _ in range(8):
            turns.append("other")
            await asyncio.sleep(0)

    async def run() -> None:
        shares = Shares(10_000_000, percent=50)
        body = IncomingBody(nothing, {}, ServerConfig())
        sending = Unread(shares).send(send, (200, [], content), body=body, caller=lambda: "anna")
        await asyncio.gather(sending, others())
        assert shares.taken == 0

    asyncio.run(run())
    assert b"".join(received) == content
    assert turns[:16] == ["piece", "other"] * 8
