"""Reads request bodies with limits on size, time and memory; for asgi.py."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from lakewarden.config import ServerConfig
from lakewarden.errors import PayloadTooLarge, RequestTimedOut, Unavailable
from lakewarden.fair_shares import Shares

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_LINGER_S: Final = 2.0
_LINGER_BYTES: Final = 4 * 1024 * 1024


class BodyMemory:
    """The memory that one request's body takes, compressed and uncompressed; released after the answer."""

    def __init__(self, shares: Shares, caller: str) -> None:
        self._shares = shares
        self.caller = caller
        self._taken = 0

    def grow(self, size: int) -> None:
        """Take `size` more bytes. Raises Unavailable if they are not available."""
        if size > 0 and not self._shares.take(self.caller, size):
            raise Unavailable(
                f"The request was not started: bodies of requests in progress take {self._shares.taken} bytes already, "
                f"{self._shares.held_by(self.caller)} of them for you, and {size} more are not available now"
            )
        self._taken += max(size, 0)

    def release(self) -> None:
        if self._taken:
            self._shares.give_back(self.caller, self._taken)
            self._taken = 0


class IncomingBody:
    """A request body that is read step by step. `is_complete`: all of it has been received; `is_expected`: the headers
    announce one (RFC 9112, 6).
    """

    def __init__(self, receive: Receive, headers: Mapping[bytes, bytes], limits: ServerConfig) -> None:
        length = headers.get(b"content-length")
        self.announced = int(length) if length is not None else None  # a number: the HTTP parser has checked it
        self.is_complete = False
        self.size = 0
        self.is_late = False
        self.is_expected = bool(self.announced) or b"transfer-encoding" in headers
        self._receive = receive
        self._limits = limits
        self._parts: list[bytes] = []
        self._began = 0.0

    def accept(self, content: bytes) -> None:
        """All of it has been received already."""
        self._parts, self.size, self.is_complete = [content], len(content), True

    def ensure_allowed(self) -> None:
        """Raises PayloadTooLarge if its Content-Length exceeds the limit."""
        if self.announced is not None and self.announced > self._limits.max_body_bytes:
            raise self.too_large(self._limits.max_body_bytes)

    @property
    def is_small(self) -> bool:
        """Whether it is small enough, as far as known, to be read before the caller is authenticated."""
        return max(self.announced or 0, self.size) <= self._limits.small_body_bytes

    async def read_small(self) -> None:
        """Read until it is complete or no longer small."""
        while not self.is_complete and self.size <= self._limits.small_body_bytes:
            await self._read()

    async def read(self, memory: BodyMemory) -> None:
        """Read all of it, counted in `memory`.

        Raises PayloadTooLarge, RequestTimedOut, Unavailable (no memory), ConnectionAbortedError (the client is gone).
        """
        reserved = 0
        while True:
            if self.size > self._limits.max_body_bytes:
                raise self.too_large(self._limits.max_body_bytes)
            memory.grow(max(self.announced or 0, self.size) - reserved)
            reserved = max(self.announced or 0, self.size)
            if self.is_complete:
                return
            await self._read()

    def content(self) -> bytes:
        """Returns what was read and releases it here."""
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def discard(self) -> None:
        """Read and drop the rest for a while: if the connection were closed immediately, many clients would report a
        reset instead of the answer.
        """
        self._parts = []
        try:
            async with asyncio.timeout(_LINGER_S):
                refused_at = self.size
                while not self.is_complete and self.size - refused_at <= _LINGER_BYTES:
                    await self._part()
        except (TimeoutError, ConnectionAbortedError):
            return

    async def _read(self) -> None:
        if not self.is_expected:
            self._parts.append(await self._part())
            return
        self._began = self._began or asyncio.get_running_loop().time()
        allowed = self._limits.body_timeout_s + self.size / self._limits.min_bytes_per_s
        try:
            async with asyncio.timeout_at(self._began + allowed):
                self._parts.append(await self._part())
        except TimeoutError:
            self.is_late = True
            raise RequestTimedOut(
                f"Only {self.size} bytes of the request's body arrived within {allowed:.0f} s"
            ) from None

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError
        part: bytes = message.get("body", b"")
        self.size += len(part)
        self.is_complete = not message.get("more_body")
        return part

    @staticmethod
    def too_large(limit: int) -> PayloadTooLarge:
        return PayloadTooLarge(f"The request body is larger than {limit} bytes")
