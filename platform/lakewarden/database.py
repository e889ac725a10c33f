"""Looks after the database connection of the thread that serves a request."""

from django.db import InterfaceError, OperationalError, connection

from lakewarden.errors import Unavailable


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
