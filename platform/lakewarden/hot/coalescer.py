"""Answers all look-ups that arrive while a query is running by the next single query.

It is exact: a query starts only after all requests that it answers have arrived, so no request gets an older state
than with a query of its own.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import psycopg

from lakewarden.errors import Unavailable
from lakewarden.hot.connections import give_back, take
from lakewarden.hot.sessions import Lookup, Row
from lakewarden.postgres.bounded import SILENCE

MAX_KEYS = 64

Key = tuple[object, ...]


@dataclass(slots=True)
class Totals:
    """Since the start of the process: look-ups that were asked for, and the statements that answered them."""

    lookups: int = 0
    statements: int = 0


TOTALS: Final = Totals()


class NotAnswered(Exception):
    """The database could not be asked. Django handles the request: it tries once more, and returns the error."""


async def found(answer: asyncio.Future[Row | None]) -> Row | None:
    """What `Coalescer.ask` has asked for; raises as `Coalescer.find`."""
    try:
        return await answer
    except SILENCE as error:
        raise Unavailable("The database does not answer. Try again shortly") from error
    except (psycopg.Error, ValueError) as error:
        raise NotAnswered from error


class Coalescer:
    """`statement` takes one array for each part of a key.

    It selects `k.i` (the key's ordinality, from 1) first, then what the caller wants; at most one row a key.
    """

    def __init__(self, statement: str) -> None:
        self.statement = Lookup(statement)
        self._waiting: list[tuple[Key, asyncio.Future[Row | None]]] = []
        self._running: asyncio.Task[None] | None = None

    async def find(self, key: Key) -> Row | None:
        """The key's row without its ordinality, or None.

        Raises NotAnswered, but Unavailable when the database is silent: whoever tried once more would wait once more.
        """
        return await found(self.ask(key))

    def ask(self, key: Key) -> asyncio.Future[Row | None]:
        """As `find`, for who awaits it by `found`."""
        answer: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MAX_KEYS], self._waiting[MAX_KEYS:]
                await self._answer(batch)
        finally:
            self._running = None

    async def _answer(self, batch: Sequence[tuple[Key, asyncio.Future[Row | None]]]) -> None:
        # requests for the same are one question, and share one row
        numbers = {key: number for number, key in enumerate(dict.fromkeys(key for key, _ in batch), start=1)}
        columns = [list(column) for column in zip(*numbers, strict=True)]
        TOTALS.lookups += len(batch)
        TOTALS.statements += 1
        try:
            rows = await self._fetch(columns)
        except Exception as error:  # noqa: BLE001 every waiting request must get an outcome, whatever the error
            if isinstance(error, SILENCE):  # those who came meanwhile have waited, too
                batch, self._waiting = [*batch, *self._waiting], []
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        found = {row[0]: row[1:] for row in rows}
        for key, answer in batch:
            if not answer.done():  # its request may have been cancelled meanwhile
                answer.set_result(found.get(numbers[key]))

    async def _fetch(self, columns: list[list[object]]) -> list[Row]:
        try:
            return await self._query(columns)
        except SILENCE:
            raise
        except psycopg.OperationalError:
            # a connection that the database has dropped in between: a read may be asked again
            return await self._query(columns, is_tested=True)

    async def _query(self, columns: list[list[object]], *, is_tested: bool = False) -> list[Row]:
        session = await take(is_tested=is_tested)
        try:
            rows = await session.fetch(self.statement, columns)
        except BaseException:
            await session.connection.close()
            raise
        give_back(session)
        return rows
