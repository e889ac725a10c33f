"""Sends answers no faster than clients read them, and limits how much memory unread answers take; for asgi.py."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from lakewarden.errors import Unavailable
from lakewarden.fair_shares import Shares
from lakewarden.hot.routes import Answer
from lakewarden.http.bodies import IncomingBody

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Whole = Callable[[Answer], bool]

PIECE: Final = 128 * 1024
"""Bytes: the most that the transport buffers of an answer."""


class Unread:
    """The memory of large answers that clients have not read yet, by caller."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares

    @property
    def is_any(self) -> bool:
        return self._shares.taken > 0

    def ensure_room(self, caller: str) -> None:
        """Raises Unavailable while unread answers for this caller, or for all callers, take too much memory."""
        if not self._shares.has_room(caller):
            raise Unavailable(
                f"The request was not started: {self._shares.taken} bytes of answers wait to be read, "
                f"{self._shares.held_by(caller)} of them are yours"
            )

    async def send(
        self, send: Send, answer: Answer, *, body: IncomingBody, caller: Callable[[], str], whole: Whole | None = None
    ) -> None:
        """Send an answer; `caller` returns who receives it, and is only called for a large one.

        If the client is still sending a body, the rest is read before the answer ends. `whole` sends an answer at
        once, where it can.
        """
        status, headers, content = answer
        if whole is not None and body.is_complete and len(content) <= PIECE and whole(answer):
            return
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if len(content) > PIECE:
            await self._send_large(send, content, caller())
        elif body.is_complete or body.is_late:
            await send({"type": "http.response.body", "body": content})
        else:
            await send({"type": "http.response.body", "body": content, "more_body": True})
            await body.discard()
            await send({"type": "http.response.body", "body": b""})

    async def _send_large(self, send: Send, content: bytes, caller: str) -> None:
        with self.counted(caller, len(content)):
            view = memoryview(content)
            for start in range(0, len(content), PIECE):
                await send({"type": "http.response.body", "body": view[start : start + PIECE], "more_body": True})
                await asyncio.sleep(0)  # a client that reads fast does not delay the answers to others
            # sent only after the client has read nearly everything, so the memory is counted until then
            await send({"type": "http.response.body", "body": b""})

    @contextmanager
    def counted(self, caller: str, size: int) -> Iterator[None]:
        """Count the bytes of a large answer, or of a large part of one, while the client reads it."""
        self._shares.force(caller, size)
        try:
            yield
        finally:
            self._shares.give_back(caller, size)
