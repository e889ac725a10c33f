"""`/health/live`, `/health/ready` and `/health`: answered on the loop, with no thread and no place of the requests'."""

import asyncio
import threading
from typing import Final

import msgspec
import psycopg
from django.db import Error, connection

from lakewarden import __version__, board, config
from lakewarden.errors import MethodNotAllowed
from lakewarden.hot.routes import Answer
from lakewarden.http import recorder
from lakewarden.postgres import limits
from lakewarden.postgres.opening import open_async

STOPPING: Final = threading.Event()
"""Set when the process was state to stop: no new work is taken."""

LIVE: Final = b"/health/live"
PATHS: Final = frozenset({LIVE, b"/health/ready", b"/health"})

_FRESH_S: Final = 1.0
_PATIENCE_S: Final = 1.0  # then the database counts as down, however the question ends
_OK: Final = 200
_NOT_READY: Final = 503


class DatabaseLook:
    """Whether the database answers, looked at by a connection of its own, at most once a second."""

    def __init__(self) -> None:
        self._connection: psycopg.AsyncConnection | None = None
        self._look: asyncio.Task[None] | None = None
        self._ended = float("-inf")
        self._is_up = False

    async def is_up(self) -> bool:
        """Answers within a second."""
        now = asyncio.get_running_loop().time()
        is_asked = self._look is not None and not self._look.done()
        if not is_asked and now - self._ended < _FRESH_S:
            return self._is_up
        if self._look is None or not is_asked:
            self._look = asyncio.create_task(self._ask())
        # psycopg waits for the server even when it is cancelled, so the question is left alone
        done, _ = await asyncio.wait({self._look}, timeout=_PATIENCE_S)
        return bool(done) and self._is_up

    async def close(self) -> None:
        own, self._connection = self._connection, None
        if own is not None:
            await own.close()

    async def _ask(self) -> None:
        # the second time by a new connection: that the first was cut says nothing about the database
        is_up = await self._answers() or await self._answers()
        self._is_up, self._ended = is_up, asyncio.get_running_loop().time()

    async def _answers(self) -> bool:
        own, self._connection = self._connection, None
        try:
            own = own or await _open()
            await own.execute("select 1", prepare=False)
        except (psycopg.Error, OSError):
            if own is not None:
                await own.close()
            return False
        self._connection = own
        return True


DATABASE: Final = DatabaseLook()


async def answer(method: str, path: bytes) -> Answer:
    """The answer at one of PATHS. `live` never asks the database. Raises MethodNotAllowed."""
    if method not in {"GET", "HEAD"}:
        raise MethodNotAllowed(f"{method} is not allowed here: GET, HEAD")
    state = {"status": "up", "version": __version__}
    if path != LIVE:
        state["database"] = "up" if await DATABASE.is_up() else "down"
        state["recording"] = "failing" if recorder.is_failing() else "up"  # no reason to send requests elsewhere
        state["status"] = "stopping" if STOPPING.is_set() else state["database"]
        server = board.current()
        if server.processes > 1:
            state["processes"] = f"{server.ready} of {server.processes}"  # one that is replaced is no reason either
            if not server.were_all_ready and state["status"] == "up":
                state["status"] = "starting"
    content = msgspec.json.encode(state)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    return _OK if state["status"] == "up" else _NOT_READY, headers, content if method == "GET" else b""


def database_answers() -> bool:
    """The same for a page, in its thread and by its connection; a connection that was cut is opened anew."""
    for _ in range(2):
        try:
            with connection.cursor() as cursor:
                cursor.execute("select 1")
        except Error:
            connection.close()
        else:
            return True
    return False


async def _open() -> psycopg.AsyncConnection:
    return await open_async(config.current().database, limits.current().at_most(_PATIENCE_S), name="lakewarden health")
