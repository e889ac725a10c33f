"""Sends HTTP requests to servers of this machine, many at once, for little of the CPU that the servers need.

Answers are framed by Content-Length or have no body, as ours are. Nothing is sent twice.
"""

import asyncio
import json as json_codec
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from standalone.ports import HOST

# the server closes what was idle for five seconds: earlier, so that no request meets the end of its connection
_IDLE_S = 3.0
_TIMEOUT_S = 60.0
_BODILESS = (204, 304)


class Lost(ConnectionError):
    """The server went away before it had answered."""


class NotThere(Lost):
    """Nobody listened: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the server on `port`; `json` is sent as its body."""

    port: int
    method: str
    path: str
    token: str
    json: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        body = b"" if self.json is None else json_codec.dumps(self.json).encode()
        told = {"host": f"{HOST}:{self.port}", "authorization": f"Bearer {self.token}"} | self.headers
        if body:
            told |= {"content-type": "application/json", "content-length": str(len(body))}
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True, slots=True)
class Answer:
    """`headers` have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json_codec.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """Status and type of an answer in the error model."""
        return self.status, str(self.json()["error"]["type"])


@dataclass
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used_at: float = 0.0

    async def answer(self, call: Call) -> Answer:
        self.writer.write(call.encoded())
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").rstrip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            status = int(first.split(" ")[1])
            empty = call.method == "HEAD" or status in _BODILESS
            body = b"" if empty else await self.reader.readexactly(int(headers["content-length"]))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Lost(f"{call.method} {call.path} was not answered") from error
        self.used_at = monotonic()
        return Answer(status, headers, body)

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return  # it was closed by the other side


class Exchange:
    """Keeps at most `most` connections to each server."""

    def __init__(self, *, most: int = 16) -> None:
        self._idle: dict[int, list[_Connection]] = defaultdict(list)
        self._turns: dict[int, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(most))

    async def answer(self, call: Call) -> Answer:
        """Raises Lost when the server is not there, or goes away meanwhile."""
        async with self._turns[call.port]:
            connection = await self._connection(call.port)
            try:
                answer = await asyncio.wait_for(connection.answer(call), _TIMEOUT_S)
            except BaseException:
                await connection.close()
                raise
            self._idle[call.port].append(connection)
            return answer

    async def answers(self, calls: Iterable[Call]) -> list[Answer]:
        """The answers of all calls, which are sent at once, as far as there are connections."""
        return list(await asyncio.gather(*(self.answer(call) for call in calls)))

    async def close(self) -> None:
        for connections in self._idle.values():
            while connections:
                await connections.pop().close()

    async def _connection(self, port: int) -> _Connection:
        idle = self._idle[port]
        while idle:
            found = idle.pop()
            if monotonic() - found.used_at < _IDLE_S and not found.reader.at_eof():
                return found
            await found.close()
        try:
            return _Connection(*await asyncio.open_connection(HOST, port))
        except OSError as error:
            raise NotThere(f"nobody answers on port {port}") from error
