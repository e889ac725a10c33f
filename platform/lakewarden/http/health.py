"""`/health/live`, `/health/ready` and `/health`, answered on the event loop, so they work when all threads are busy."""

import asyncio
import threading
import time
from typing import Final

import msgspec
import psycopg
from django.db import Error, connection

from lakewarden import __version__, board, config
from lakewarden.errors import MethodNotAllowed
from lakewarden.hot.routes import Answer
from lakewarden.http import background_writer
from lakewarden.http.authorization_look import AUTHORIZATION
from lakewarden.kafka_states import KafkaState
from lakewarden.postgres import limits
from lakewarden.postgres.opening import open_async

STOPPING: Final = threading.Event()
"""Set when the process has begun to stop: it accepts no new work."""

LIVE: Final = b"/health/live"
PATHS: Final = frozenset({LIVE, b"/health/ready", b"/health"})

_FRESH_S: Final = 1.0
_PATIENCE_S: Final = 1.0  # after this the database counts as down
_TOLD_MS: Final = 60_000  # for so long after a write that found no space, or that Kafka did not take
_OK: Final = 200
_NOT_READY: Final = 503


class DatabaseLook:
    """Checks whether the database answers, with a connection of its own, at most once a second."""

    def __init__(self) -> None:
        self._connection: psycopg.AsyncConnection | None = None
        self._look: asyncio.Task[None] | None = None
        self._ended = float("-inf")
        self._is_up = False

    async def is_up(self) -> bool:
        """Whether the database answers; returns within a second."""
        now = asyncio.get_running_loop().time()
        is_asked = self._look is not None and not self._look.done()
        if not is_asked and now - self._ended < _FRESH_S:
            return self._is_up
        if self._look is None or not is_asked:
            self._look = asyncio.create_task(self._ask())
        # psycopg waits for the server even when it is cancelled, so the task is not cancelled but left running
        done, _ = await asyncio.wait({self._look}, timeout=_PATIENCE_S)
        return bool(done) and self._is_up

    async def close(self) -> None:
        own, self._connection = self._connection, None
        if own is not None:
            await own.close()

    async def _ask(self) -> None:
        # tried twice, the second time with a new connection: a closed connection does not mean that the database is
        # down
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
    """The answer for one of PATHS; LIVE does not check the database. Raises MethodNotAllowed."""
    if method not in {"GET", "HEAD"}:
        raise MethodNotAllowed(f"{method} is not allowed here; allowed are GET, HEAD")
    state = {"status": "up", "version": __version__}
    if path != LIVE:
        state["database"] = "up" if await DATABASE.is_up() else "down"
        # does not make the server unready: other servers would have the same problem
        state["recording"] = "failing" if background_writer.is_failing() else "up"
        state["status"] = "stopping" if STOPPING.is_set() else state["database"]
        if AUTHORIZATION.is_lost():  # nor do rights that OpenFGA has lost
            state["authorization"] = "lost"
        server = board.current()
        if left_alone := server.left_alone:  # nor does a store of some warehouses; whose they are is not for everybody
            state["storages"] = f"{left_alone} left alone"
        now_ms = int(time.monotonic() * 1000)
        if server.full_at and now_ms - server.full_at < _TOLD_MS:  # nor does a full disk: reads go on
            state["space"] = "none left"
        if contents := KafkaState(server.contents_since(now_ms - _TOLD_MS)):  # nor does Kafka: only events need it
            state["contents"] = contents.words
        if server.processes > 1:
            state["processes"] = f"{server.ready} of {server.processes}"  # nor does a process that is being replaced
            if not server.were_all_ready and state["status"] == "up":
                state["status"] = "starting"
    content = msgspec.json.encode(state)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    return _OK if state["status"] == "up" else _NOT_READY, headers, content if method == "GET" else b""


def database_answers() -> bool:
    """Whether the database answers, for Django's views; a closed connection is opened again."""
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
