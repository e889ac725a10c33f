"""Looks after the database connection of the thread that serves a request, and says what a failure of it means."""

from typing import Any

from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError, connection
from psycopg.errors import (
    DeadlockDetected,
    IdleInTransactionSessionTimeout,
    InvalidSqlStatementName,
    LockNotAvailable,
    QueryCanceled,
)

from lakewarden.errors import CommitStateUnknown, LakewardenError, Unavailable
from lakewarden.postgres.bounded import Silent

_TRANSACTION_TIMEOUT = "25P04"  # the driver has no class for it before PostgreSQL 17's


def begin_request() -> None:
    """Forget what earlier requests of this thread have committed."""
    _session().has_sent_commit = False


def may_have_changed() -> bool:
    """Whether this request has committed something, or tried to: then nobody may be told that nothing was changed."""
    return bool(getattr(_session(), "has_sent_commit", False))


def is_outage(error: BaseException | None) -> bool:
    """Whether the database failed, or gave up what it was doing, for a reason that lies not in the statement."""
    if isinstance(error, OperationalError | InterfaceError):
        return True
    cause = getattr(error, "__cause__", None)
    if isinstance(error, InternalError):
        return (
            isinstance(cause, IdleInTransactionSessionTimeout)
            or getattr(cause, "sqlstate", None) == _TRANSACTION_TIMEOUT
        )
    return isinstance(error, ProgrammingError) and isinstance(cause, InvalidSqlStatementName)


def refusal(error: BaseException) -> LakewardenError:
    """What the caller is told of an outage."""
    if may_have_changed():
        return CommitStateUnknown(
            "The database failed while the change was being made: load the object to see whether it was applied"
        )
    return Unavailable(f"{_reason(error.__cause__)}; nothing was changed. Try again shortly")


def may_be_repeated(error: Exception) -> bool:
    """Whether the failed request changed nothing and may well succeed when it is begun once more."""
    return not may_have_changed() and (was_stale(error) or _has_lost_deadlock(error))


def _reason(cause: BaseException | None) -> str:
    if isinstance(cause, LockNotAvailable):
        return "Another request is changing the same object and took too long"
    if isinstance(cause, QueryCanceled):
        return "The database took too long"
    return "The database is not available"


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
    if not is_outage(cause) or connection.connection is None:
        return False
    if connection.in_atomic_block or connection.is_usable():
        return False
    connection.close()
    # a database that was silent for so long would be so again
    return not isinstance(getattr(cause, "__cause__", None), Silent)


def _session() -> Any:  # noqa: ANN401 the engine's own attribute, which Django's types do not know
    return connection
