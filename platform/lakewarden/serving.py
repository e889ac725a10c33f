"""Runs the HTTP server of `lakewarden serve`."""

import asyncio
import errno
import logging
import os
import resource
import socket
import sys
from typing import Final

import uvicorn

from lakewarden.config import Config, ServerConfig
from lakewarden.http import health
from lakewarden.http.connection import SPARE, BoundedConnection
from lakewarden.http.running_queries import RUNNING
from lakewarden.stop import Stop

logger = logging.getLogger(__name__)

_AFTERWARDS_S: Final = 4.0  # for what is left to do when the time of the requests in progress is over
_TICKS_A_SECOND: Final = 10
_OTHER_FILES: Final = 1024  # sessions of the database, files of warehouses


def run(settings: Config, stop: Stop) -> int:
    """Serve until TERM or INT, and end the process then; returns 1 when the port is taken, which it says."""
    server = Server(settings.server)
    stop.prepare(server.stop, bound_s=settings.server.stop_timeout_s + _AFTERWARDS_S)
    try:
        listener = _listen(settings.server.host, settings.server.port, connections=settings.server.max_connections)
    except OSError as error:
        reason = "is taken by another program" if error.errno == errno.EADDRINUSE else f"is unusable: {error.strerror}"
        print(  # noqa: T201 a sentence for the person at the terminal
            f"Error: {settings.server.host}:{settings.server.port} {reason}; "
            "set LAKEWARDEN__SERVER__PORT to a free port",
            file=sys.stderr,
        )
        return 1
    server.run(sockets=[listener])
    return 0


class Server(uvicorn.Server):
    """uvicorn, with a sweep of its connections and an end in its time."""

    def __init__(self, settings: ServerConfig, *, application: object = "lakewarden.asgi:application") -> None:
        super().__init__(
            uvicorn.Config(
                application,  # type: ignore[arg-type]  # uvicorn's types of ASGI are its own
                http=BoundedConnection,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # `http.proxies` does it
                timeout_keep_alive=settings.keep_alive_timeout_s,
            )
        )
        self._stop_timeout_s = settings.stop_timeout_s

    def stop(self) -> None:
        """Begin to stop; any thread may call it."""
        health.STOPPING.set()
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_SECOND == 0:
            now = asyncio.get_running_loop().time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, BoundedConnection):
                    connection.sweep(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        logging.shutdown()
        os._exit(0)  # whatever is still stuck in a thread: nobody waits for it

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


def _listen(host: str, port: int, *, connections: int) -> socket.socket:
    _allow_open_files(connections + SPARE)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener


def _allow_open_files(connections: int) -> None:
    """A connection takes a file descriptor; without any left, none could be accepted, nor a file be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        if limit < wanted:
            logger.warning(
                "At most %d files may be open (ulimit -n), %d connections need %d", limit, connections, wanted
            )
