"""The client side of one HTTP/1.1 connection, written for the least work per answer; for load.closed_loop.

RFC 9112: answers framed by Content-Length, by chunks, or without a body (HEAD, 204, 304). Nothing is retried.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from benchmarks.failures import BenchmarkError

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_BODILESS = (204, 304)
_TEXT_LIMIT = 200


@dataclass(slots=True)
class Answer:
    """`size` counts all bytes received; `body` is empty unless it was to be kept; `closes` ends the connection."""

    status: int
    head: bytes
    size: int
    body: bytes
    closes: bool


class Connection(asyncio.Protocol):
    """Sends one request at a time; `on_answer` gets each answer, `on_lost` the end of the connection."""

    def __init__(self, on_answer: Callable[[Answer], None], on_lost: Callable[[], None]) -> None:
        self._on_answer = on_answer
        self._on_lost = on_lost
        self._transport: asyncio.WriteTransport | None = None
        self._is_head = False
        self._keep = False
        self._reset()

    def ask(self, request: bytes, *, is_head: bool, keep: bool) -> None:
        """Send a complete request; `keep` its answer's body."""
        if self._transport is None:
            raise BenchmarkError("A request was sent on a connection that is closed")
        self._is_head = is_head
        self._keep = keep
        self._transport.write(request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is one without inheriting from it

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 asyncio's signature
        self._transport = None
        self._on_lost()

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        if self._left:
            self._body(data)
        elif self._chunks is not None:
            self._chunked(data)
        else:
            self._head_received(data)

    def _reset(self) -> None:
        self._answer_head = b""
        self._size = 0
        self._left = 0
        self._chunks: bytearray | None = None
        self._parts: list[bytes] = []

    def _head_received(self, data: bytes) -> None:
        received = self._answer_head + data if self._answer_head else data
        end = received.find(_HEAD_END)
        if end < 0:
            self._answer_head = received
            return
        self._answer_head = received[:end]
        body = received[end + len(_HEAD_END) :]
        status = int(received[9:12])
        if self._is_head or status in _BODILESS:
            self._finish()
        elif length := _LENGTH.search(self._answer_head):
            self._left = int(length[1])
            self._body(body)
        elif _CHUNKED.search(self._answer_head):
            self._chunks = bytearray()
            self._chunked(body)
        else:
            text = self._answer_head[:_TEXT_LIMIT].decode("latin-1")
            raise BenchmarkError(f"The server's answer has neither Content-Length nor chunks: {text!r}")

    def _body(self, data: bytes) -> None:
        self._left -= len(data)
        if self._keep:
            self._parts.append(data)
        if self._left == 0:
            self._finish()

    def _chunked(self, data: bytes) -> None:
        """Take whole chunks off what has arrived; a chunk of size 0 and an empty line end the body."""
        buffer = self._chunks
        assert buffer is not None  # noqa: S101 the caller's condition, for the type checker
        buffer += data
        while (line := buffer.find(b"\r\n")) >= 0:
            size = int(buffer[:line].partition(b";")[0], 16)
            end = line + 2 + size + 2
            if len(buffer) < end:
                return
            if size == 0:
                self._finish()
                return
            if self._keep:
                self._parts.append(bytes(buffer[line + 2 : end - 2]))
            del buffer[:end]

    def _finish(self) -> None:
        head = self._answer_head
        closes = _CLOSE.search(head) is not None
        answer = Answer(int(head[9:12]), head, self._size, b"".join(self._parts), closes)
        self._reset()
        self._on_answer(answer)
        if closes:
            self.close()
