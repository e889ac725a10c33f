"""A long connection to the root application in this process: what uvicorn would hand to it, without a network."""

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

from tests.servers.asgi_client import _loop, run

PATIENCE_S = 20


class AsgiConnection:
    """`scope` completes the scope of the connection to `path`, which may have a query."""

    def __init__(self, path: str, headers: Mapping[str, str], scope: dict[str, Any]) -> None:
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reading = asyncio.Event()
        self._reading.set()
        raw, _, query = path.partition("?")
        self._scope = {
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
            **scope,
        }

    def start(self) -> None:
        self._task = asyncio.run_coroutine_threadsafe(self._serve(), _loop())

    def put(self, message: dict[str, Any]) -> None:
        """Hands it to the application."""
        _loop().call_soon_threadsafe(self._incoming.put_nowait, message)

    def next(self) -> dict[str, Any]:
        """The application's next message."""
        return run(asyncio.wait_for(self._outgoing.get(), PATIENCE_S))

    def stop_reading(self) -> None:
        """From now on the application's messages are not taken from it."""
        _loop().call_soon_threadsafe(self._reading.clear)

    def read_again(self) -> None:
        _loop().call_soon_threadsafe(self._reading.set)

    def waiting(self) -> int:
        """How many messages the application has not taken."""

        async def count() -> int:
            return self._incoming.qsize()

        return run(count())

    def has_ended(self) -> bool:
        return self._task.done()

    def rest(self) -> None:
        """Until the application has ended it."""
        self._task.result(PATIENCE_S)

    async def _serve(self) -> None:
        from lakewarden.asgi import application  # noqa: PLC0415 it reads the configuration when it is imported

        await application(self._scope, self._incoming.get, self._send)

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self._reading.wait()
        self._outgoing.put_nowait(dict(message))
