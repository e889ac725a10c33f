"""Connections on which every wait for an answer has a limit.

PostgreSQL's own time-outs end a slow statement. They do not help if the server is frozen or the network drops packets:
then only the client can end the wait.
"""

import secrets
from typing import Any, Final, Protocol, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn
from psycopg.rows import TupleRow

from lakewarden.postgres import history
from lakewarden.postgres.limits import Limits

RV = TypeVar("RV")
_INTERVAL_S = 0.1


class Silent(psycopg.OperationalError):
    """The database did not answer in time and the connection was closed: the outcome of the statement is not known."""


SILENCE: Final = (Silent, errors.ConnectionTimeout)
"""Errors after which an immediate retry would only wait as long again."""


CURSORS: Final = (psycopg.Cursor, psycopg.AsyncCursor)
"""The driver's classes by which statements are run, for who follows them."""


class _Named(Protocol):
    _prepared: Any


def _name_statements_uniquely(connection: _Named) -> None:
    """Give prepared statements random names.

    Behind a pooler, connections of several processes may share a session. With the driver's names (a counter), one of
    them could execute another one's statement; with these, it fails because the name does not exist.
    """
    connection._prepared._prepared_idx = secrets.randbits(60)  # noqa: SLF001 the driver has no public name for it


class Bounded(psycopg.Connection[TupleRow]):
    """`patience_s` limits each wait, in seconds; None: no limit."""

    patience_s: float | None = None

    def __init__(self, pgconn: PGconn, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 the driver's signature
        super().__init__(pgconn, *args, **kwargs)
        _name_statements_uniquely(self)

    def wait(self, gen: PQGen[RV], interval: float = _INTERVAL_S, timeout: float | None = None) -> RV:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.patience_s)
        except errors._WaitTimeout as error:  # noqa: SLF001 as above
            raise hung_up(self.pgconn, self.patience_s) from error


class AsyncBounded(psycopg.AsyncConnection[TupleRow]):
    """Like `Bounded`, for asyncio.

    `prepared_names`: of statements that were prepared without the driver, by text; `ear` hears the answers to them, and
    leaves the socket to the driver before that waits or closes it.
    """

    patience_s: float | None = None

    def __init__(self, pgconn: PGconn, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 the driver's signature
        super().__init__(pgconn, *args, **kwargs)
        _name_statements_uniquely(self)
        self.prepared_names: dict[bytes, bytes] = {}
        self.ear: Any = None  # a `hot.sessions.Ear`

    @property
    def is_heard(self) -> bool:
        """Whether the loop listens, and nothing was said when nobody had asked."""
        return self.ear is not None and self.ear.is_open

    def _deafen(self) -> None:
        ear, self.ear = self.ear, None
        if ear is not None:
            ear.close()

    async def close(self) -> None:
        self._deafen()
        await super().close()

    async def wait(  # the driver's signature
        self,
        gen: PQGen[RV],
        interval: float = _INTERVAL_S,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> RV:
        self._deafen()
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        try:
            return await super().wait(gen, interval, self.patience_s)
        except errors._WaitTimeout as error:  # noqa: SLF001 as above
            raise hung_up(self.pgconn, self.patience_s) from error


def begin(connection: Bounded, limits: Limits) -> None:
    """Set the limits of a new connection in autocommit mode, and look at the history that it shows.

    They are not sent as start-up parameters, which poolers such as pgbouncer refuse.
    """
    connection.patience_s = limits.answer_s
    connection.execute(_SET, _values(limits), prepare=False)
    try:
        found = connection.execute(history.TEXT, prepare=False).fetchone()
    except _UNTOLD:
        found = connection.execute(history.PLAIN_TEXT, prepare=False).fetchone()
    history.seen(_told(found))


async def begin_async(connection: AsyncBounded, limits: Limits) -> None:
    connection.patience_s = limits.answer_s
    await connection.execute(_SET, _values(limits), prepare=False)
    try:
        found = await (await connection.execute(history.TEXT, prepare=False)).fetchone()
    except _UNTOLD:
        found = await (await connection.execute(history.PLAIN_TEXT, prepare=False)).fetchone()
    history.seen(_told(found))


_UNTOLD: Final = (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFunction)


def _told(found: TupleRow | None) -> history.Told:
    assert found is not None  # noqa: S101 a select without a table
    return found[0], found[1], found[2]


def _values(limits: Limits) -> list[list[str]]:
    wanted = limits.parameters()
    return [list(wanted), list(wanted.values())]


def hung_up(pgconn: PGconn, patience_s: float | None) -> Silent:
    pgconn.finish()
    return Silent(f"The database has not answered for {patience_s:g} s")


# the condition leaves out parameters that older servers do not have
_SET = """
    select set_config(name, value, false) from unnest(%s::text[], %s::text[]) as wanted (name, value)
    where current_setting(name, true) is not null
"""
