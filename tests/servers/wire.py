"""A connection to the application of this process without a socket: bytes in, bytes out, as uvicorn would see them."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn
from uvicorn.server import ServerState

from lakewarden.http.connection import BoundedConnection
from tests.servers import asgi_client
from tests.servers.asgi_client import Answer

_PATIENCE_S = 60
_BODILESS = {204, 304}


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.received = b""
        self.arrived = asyncio.Event()
        self.is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 50000) if name in {"peername", "sockname"} else default

    def write(self, data: Any) -> None:
        self.received += bytes(data)
        self.arrived.set()

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True
        self.arrived.set()

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


@dataclass
class Wire:
    """One connection. `sent` are the headers that each request has."""

    headers: dict[str, str] = field(default_factory=dict)
    connection: BoundedConnection = field(init=False)
    transport: _Transport = field(init=False)

    @classmethod
    def opened(cls, **headers: str) -> Self:
        self = cls({name.replace("_", "-"): value for name, value in headers.items()})
        asgi_client.run(self._open())
        return self

    def ask(self, method: str, target: str, *further: str) -> Answer:
        """The answer to a request without a body; `further` are header lines."""
        lines = [f"{method} {target} HTTP/1.1", "Host: catalog.test", *further]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return self.exchange("\r\n".join([*lines, "", ""]).encode(), is_head=method == "HEAD")

    def exchange(self, sent: bytes, *, is_head: bool = False) -> Answer:
        """The first answer to these bytes."""
        return asgi_client.run(self._exchange(sent, is_head=is_head))

    async def _open(self) -> None:
        from lakewarden.asgi import application  # noqa: PLC0415 it reads the configuration when it is imported

        config = uvicorn.Config(
            application,
            http=BoundedConnection,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        config.load()
        state = ServerState()
        state.default_headers = [(b"date", b"Sun, 22 Nov 2026 22:00:00 GMT")]
        self.transport = _Transport()
        self.connection = BoundedConnection(config, state, {}, asyncio.get_running_loop())
        self.connection.connection_made(self.transport)

    async def _exchange(self, sent: bytes, *, is_head: bool) -> Answer:
        self.connection.data_received(sent)
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                answer = self._taken(is_head=is_head)
                if answer is not None:
                    return answer
                assert not self.transport.is_closed, self.transport.received
                self.transport.arrived.clear()
                await self.transport.arrived.wait()

    def _taken(self, *, is_head: bool) -> Answer | None:
        head, end, rest = self.transport.received.partition(b"\r\n\r\n")
        if not end:
            return None
        status, *lines = head.decode("latin-1").split("\r\n")
        pairs = [line.partition(": ") for line in lines]
        headers = {name.lower(): value for name, _, value in pairs if name.lower() != "date"}
        assert len(headers) == len(pairs) - 1, head
        number = int(status.split(" ")[1])
        size = 0 if is_head or number in _BODILESS else int(headers["content-length"])
        if len(rest) < size:
            return None
        self.transport.received = rest[size:]
        return Answer(number, headers, rest[:size])
