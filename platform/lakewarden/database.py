"""Looks after the database connection of the thread that serves a request, and says what may be begun once more."""

from django.db import InterfaceError, OperationalError, connection
from psycopg.errors import DeadlockDetected

from lakewarden.errors import Unavailable


def may_be_repeated(error: Exception) -> bool:
    """Whether the failed request changed nothing and may well succeed when it is begun once more."""
    return was_stale(error) or _has_lost_deadlock(error)


def _has_lost_deadlock(error: Exception) -> bool:
    """Whether the database undid the transaction so that another, which waited for it, could go on."""
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    return isinstance(cause, OperationalError) and isinstance(cause.__cause__, DeadlockDetected)


def was_stale(error: Exception) -> bool:
    """Whether `error` comes from a connection that works no more; it is closed, so that the next use opens another.

    A look at each request's start would cost a query. Nothing of the failed request was applied: a transaction that
    was cut off is Unavailable, one whose outcome is unknown is another error, and never stale.
    """
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    if not isinstance(cause, OperationalError | InterfaceError) or connection.connection is None:
        return False
    if connection.in_atomic_block or connection.is_usable():
        return False
    connection.close()
    return True
