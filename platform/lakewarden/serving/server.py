"""uvicorn's server with limits: checks its connections, stops in time, shares new connections with other processes."""

import asyncio
import gc
import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Final

import uvicorn

from lakewarden import board, config
from lakewarden.config import ServerConfig
from lakewarden.http import health
from lakewarden.http.connection import BoundedConnection
from lakewarden.http.running_queries import RUNNING
from lakewarden.http.sockets import BoundedSocket
from lakewarden.serving.acceptor import Acceptor

logger = logging.getLogger(__name__)

_TICKS_A_SECOND: Final = 10
_NEW_OBJECTS: Final = 10_000
"""After so many the youngest are searched for garbage; after Python's 700 every few requests would do that."""


class Server(uvicorn.Server):
    """The server of one process; `on_ready` is called when it can answer requests."""

    def __init__(
        self,
        settings: ServerConfig,
        *,
        application: object = "lakewarden.asgi:application",
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,  # type: ignore[arg-type]  # uvicorn's types of ASGI are its own
                http=BoundedConnection,
                ws=BoundedSocket,
                ws_max_size=config.current().ingest.max_message_bytes,
                ws_per_message_deflate=False,  # a few bytes could become as many as memory has
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # `http.proxies` does it
                timeout_keep_alive=settings.keep_alive_timeout_s,
            )
        )
        self._stop_timeout_s = settings.stop_timeout_s
        self._on_ready = on_ready
        self._acceptors: list[Acceptor] = []

    def stop(self) -> None:
        """Begin to stop; any thread may call it."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if board.current().processes == 1:
            await super().startup(sockets)
        else:
            await super().startup([])
            self._acceptors = [Acceptor(each, self._connection, self._open_connections) for each in sockets or []]
        # what is there by now stays until the end: a search of it for garbage would stop all requests each time
        gc.collect()
        gc.freeze()
        gc.set_threshold(_NEW_OBJECTS)
        self._note_alive()
        if self._on_ready is not None:
            self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        self._note_alive()
        if counter % _TICKS_A_SECOND == 0:
            now = asyncio.get_running_loop().time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, BoundedConnection):
                    connection.sweep(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # not earlier: what arrives until connections without a request are closed is answered like any other request
        health.STOPPING.set()
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)
        logging.shutdown()
        os._exit(0)  # ends the process even if a thread still hangs

    def _connection(self) -> asyncio.Protocol:
        return BoundedConnection(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def _open_connections(self) -> int:
        return len(self.server_state.connections)

    def _note_alive(self) -> None:
        board.current().note_alive(int(time.monotonic() * 1000), connections=self._open_connections())

    async def _wait_tasks_to_complete(self) -> None:
        try:
            async with asyncio.timeout(self._stop_timeout_s):
                await super()._wait_tasks_to_complete()
        except TimeoutError:
            connections = tuple(self.server_state.connections)
            logger.warning(
                "%d requests were in progress %g s after the signal to stop: their connections are closed without an "
                "answer, as what they did is unknown",
                len(connections),
                self._stop_timeout_s,
            )
            for connection in connections:
                connection.transport.abort()
            cancelling = asyncio.ensure_future(asyncio.to_thread(RUNNING.cancel))
            await asyncio.wait({cancelling}, timeout=1)
