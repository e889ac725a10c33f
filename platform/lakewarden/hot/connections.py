"""Database sessions of the hot routes: opened when needed, reused last in, first out."""

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from lakewarden import config
from lakewarden.hot.sessions import Session
from lakewarden.postgres import limits
from lakewarden.postgres.bounded import AsyncBounded
from lakewarden.postgres.opening import open_async

STATEMENT_S = 10.0
"""Far more than a look-up by key takes: who needs longer is better answered by Django."""

_idle: list[Session] = []


@asynccontextmanager
async def session() -> AsyncIterator[Session]:
    """One in autocommit mode; one whose use failed or was cancelled is closed, never used again."""
    taken = await take()
    try:
        yield taken
    except BaseException:
        await taken.connection.close()
        raise
    give_back(taken)


async def take(*, is_tested: bool = True) -> Session:
    """As `session`, for who closes it themselves when its use failed, or else gives it back.

    One that `is_tested` has not ended; another may have, a moment ago: for who only reads, and can read again.
    """
    if not is_tested and _idle and _idle[-1].connection.is_heard:
        return _idle.pop()
    return await _taken() or await _open()


def give_back(taken: Session) -> None:
    _idle.append(taken)


@asynccontextmanager
async def connection() -> AsyncIterator[AsyncBounded]:
    """The connection of such a session, for statements of several kinds or in a transaction."""
    async with session() as taken:
        yield taken.connection


async def _taken() -> Session | None:
    """The one used last that is still there: the outcome of a change sent to one that has ended would be unknown."""
    while _idle:
        found = _idle.pop()
        if not _has_ended(found.connection):
            return found
        await found.connection.close()
    return None


def _has_ended(connection: psycopg.AsyncConnection) -> bool:
    """Whether there is something to read: nobody has asked, so that it can only be the last words."""
    if connection.closed:
        return True
    looking = select.poll()
    looking.register(connection.fileno(), select.POLLIN)
    return bool(looking.poll(0))


async def close_all() -> None:
    while _idle:
        await _idle.pop().connection.close()


async def _open() -> Session:
    allowed = limits.current().at_most(STATEMENT_S)
    return Session(await open_async(config.current().database, allowed, name="lakewarden hot"))
