"""Sessions of the database for the event loop, and the look-ups that are prepared on them.

Look-ups speak to libpq directly: the driver's cursor costs the loop eight times as much for a statement of this kind.
"""

import asyncio
import re
import secrets
from collections.abc import Callable, Sequence
from itertools import count
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from lakewarden.postgres.bounded import AsyncBounded, hung_up

Row = tuple[Any, ...]

_BINARY: Final = 1
_PARAMETER: Final = re.compile(r"%s::(\w+)\[\]")
_ARRAY: Final = Struct(">iiiii").pack  # dimensions, whether there are nulls, type, length, first index
_LENGTH: Final = Struct(">i").pack
_NULL: Final = _LENGTH(-1)
_BIGINT: Final = Struct(">q").pack
_UNSEEN: Final = 1 << 60
_GOOD: Final = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})

_TYPES: Final[dict[str, tuple[int, Callable[[Any], bytes]]]] = {
    "bigint": (20, _BIGINT),
    "bytea": (17, bytes),
    "text": (25, str.encode),
    "uuid": (2950, lambda value: value.bytes),
}
"""The number of a type in PostgreSQL, and how a value is sent."""


class Lookup:
    """`text` has a parameter `%s::<type>[]` for each column of keys; types are bigint, bytea, text and uuid."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._types = [_TYPES[each] for each in _PARAMETER.findall(text)]
        numbers = count(1)
        self.sent = _PARAMETER.sub(lambda found: f"${next(numbers)}::{found[1]}[]", text).encode()

    def parameters(self, columns: Sequence[Sequence[object]]) -> list[bytes]:
        return [_array(*each, column) for each, column in zip(self._types, columns, strict=True)]


def _array(number: int, sent: Callable[[Any], bytes], values: Sequence[object]) -> bytes:
    parts = [_ARRAY(1, None in values, number, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            content = sent(value)
            parts += (_LENGTH(len(content)), content)
    return b"".join(parts)


class Session:
    """A connection with the look-ups that are prepared on it. One whose use failed must be closed."""

    def __init__(self, connection: AsyncBounded) -> None:
        self.connection = connection

    async def fetch(self, lookup: Lookup, columns: Sequence[Sequence[object]]) -> list[Row]:
        """All rows. Raises psycopg.Error; ValueError for text that the database cannot have."""
        parameters = lookup.parameters(columns)
        return await fetch(self.connection, lookup.sent, parameters, [_BINARY] * len(parameters))


async def fetch(
    connection: AsyncBounded, text: bytes, parameters: Sequence[bytes | None], formats: Sequence[int]
) -> list[Row]:
    """All rows of a statement with parameters $1, $2, …, which is prepared once. Raises psycopg.Error."""
    ear: Ear | None = connection.ear
    if ear is None or not ear.is_open:
        ear = connection.ear = Ear(connection)
    name = connection.prepared_names.get(text)
    if name is None:
        # behind a pooler that lends out one session to many, a name is then unknown, never another's statement
        name = f"hot_{secrets.randbelow(_UNSEEN):x}".encode()
        connection.pgconn.send_prepare(name, text)
        await ear.answer()
        connection.prepared_names[text] = name
    connection.pgconn.send_query_prepared(name, parameters, formats, _BINARY)
    return ear.rows(await ear.answer())


class Ear:
    """Hears what the database says on one connection, to one command at a time that was sent without the driver.

    It stays with the loop between commands: to come and go for each would cost as much as all the rest of a look-up.
    """

    def __init__(self, connection: AsyncBounded) -> None:
        self._loop = asyncio.get_running_loop()
        self._pgconn: PGconn = connection.pgconn
        self._socket = self._pgconn.socket
        self._patience_s = connection.patience_s
        self._loader = Transformer(connection)
        self._results: list[PGresult] = []
        self._future: asyncio.Future[PGresult] | None = None
        self._is_writing = False
        self.is_open = True
        self._loop.add_reader(self._socket, self._read)

    async def answer(self) -> PGresult:
        """To the command that was sent just now. Raises psycopg.Error, Silent if none comes in time."""
        self._results = []
        future: asyncio.Future[PGresult] = self._loop.create_future()
        self._future = future
        timer = None if self._patience_s is None else self._loop.call_later(self._patience_s, self._give_up)
        try:
            if self._pgconn.flush():
                self._is_writing = True
                self._loop.add_writer(self._socket, self._write)
            result = await future
        except BaseException:
            self.close()
            raise
        finally:
            self._future = None
            if timer is not None:
                timer.cancel()
        if result.status not in _GOOD:
            raise psycopg.errors.error_from_result(result)
        return result

    def rows(self, result: PGresult) -> list[Row]:
        loader = self._loader
        loader.set_pgresult(result)
        rows = loader.load_rows(0, result.ntuples, tuple)
        loader.set_pgresult(None)
        return rows

    def close(self) -> None:
        """Must be called before the socket is closed, or used by others."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._socket)
            self._stop_writing()

    def _read(self) -> None:
        future = self._future
        if future is None or future.done():
            self.close()  # nobody has asked: whoever uses the connection next will see that something was said
            return
        pgconn = self._pgconn
        try:
            pgconn.consume_input()
            while not pgconn.is_busy():
                result = pgconn.get_result()
                if result is not None:
                    self._results.append(result)
                    continue
                if self._results:
                    # what fails when the transaction commits (a deferred constraint) follows the rows
                    bad = (each for each in self._results if each.status not in _GOOD)
                    future.set_result(next(bad, self._results[0]))
                else:
                    self._fail(psycopg.OperationalError("The database has ended its answer before it began"))
                return
        except psycopg.Error as error:
            self._fail(error)

    def _write(self) -> None:
        try:
            if not self._pgconn.flush():
                self._stop_writing()
        except psycopg.Error as error:
            self._fail(error)

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._socket)

    def _give_up(self) -> None:
        self.close()
        self._fail(hung_up(self._pgconn, self._patience_s))

    def _fail(self, error: Exception) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_exception(error)
