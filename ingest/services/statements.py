"""Runs the gateway's statements on the event loop."""

from collections.abc import Sequence

import psycopg

from lakewarden.hot.connections import session
from lakewarden.hot.sessions import Lookup, Row
from lakewarden.postgres.bounded import SILENCE


class LogUnavailable(Exception):
    """The database could not be asked, or has not answered: what was to be changed may have been changed."""


class Interrupted(LogUnavailable):
    """The session had ended; another one may work."""


class Unstorable(Exception):
    """The database is well, and has refused a value; the message says which."""


async def run(statement: Lookup, columns: Sequence[Sequence[object]]) -> list[Row]:
    """All rows; a second session is tried. Raises LogUnavailable, Unstorable."""
    try:
        return await run_once(statement, columns)
    except Interrupted:
        return await run_once(statement, columns)


async def run_once(statement: Lookup, columns: Sequence[Sequence[object]]) -> list[Row]:
    """As `run`, for what is not simply repeated."""
    try:
        try:
            return await _rows(statement, columns)
        except psycopg.errors.CheckViolation:
            # the partition of a new row was attached after the statement had begun: nothing was changed
            return await _rows(statement, columns)
    except SILENCE as error:
        raise LogUnavailable(str(error)) from error
    except psycopg.DataError as error:
        raise Unstorable(str(error).strip()) from error
    except (psycopg.OperationalError, OSError) as error:
        raise Interrupted(str(error).strip()) from error
    except psycopg.Error as error:
        # details would show the row, which is somebody's data
        raise LogUnavailable(error.diag.message_primary or str(error).strip()) from error


async def _rows(statement: Lookup, columns: Sequence[Sequence[object]]) -> list[Row]:
    async with session() as usable:
        return await usable.fetch(statement, columns)
