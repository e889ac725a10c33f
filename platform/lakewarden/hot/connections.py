"""Async database connections of the hot routes: opened when needed, reused last in, first out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from lakewarden import config

_idle: list[psycopg.AsyncConnection] = []


@asynccontextmanager
async def connection() -> AsyncIterator[psycopg.AsyncConnection]:
    """A connection in autocommit mode; one whose use failed or was cancelled is closed, never used again."""
    taken = _idle.pop() if _idle else await _open()
    try:
        yield taken
    except BaseException:
        await taken.close()
        raise
    _idle.append(taken)


async def close_all() -> None:
    while _idle:
        await _idle.pop().close()


async def _open() -> psycopg.AsyncConnection:
    settings = config.current().database
    assert settings.url is not None  # noqa: S101 a server does not start without
    return await psycopg.AsyncConnection.connect(
        settings.url.get_secret_value(),
        autocommit=True,
        prepare_threshold=1,
        connect_timeout=settings.connect_timeout_s,
        application_name="lakewarden hot",
        options="-c statement_timeout=10s",
    )
