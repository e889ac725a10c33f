"""Decides what a failure of the database means for a request: retry, 503, or an unknown outcome."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import Error, InterfaceError, InternalError, OperationalError, ProgrammingError, connection
from psycopg.errors import (
    DeadlockDetected,
    IdleInTransactionSessionTimeout,
    InvalidSqlStatementName,
    LockNotAvailable,
    QueryCanceled,
)

from lakewarden.errors import CommitStateUnknown, LakewardenError, Unavailable
from lakewarden.postgres.bounded import Silent

T = TypeVar("T")

_TRANSACTION_TIMEOUT = "25P04"  # transaction_timeout: older drivers have no exception class for it


def begin_request() -> None:
    """Reset the flag of commits, which the thread's earlier requests may have set."""
    _session().has_sent_commit = False


def may_have_changed() -> bool:
    """Whether this request has sent a commit: then the answer must not claim that nothing was changed."""
    return bool(getattr(_session(), "has_sent_commit", False))


def read(question: Callable[[], T]) -> T:
    """What `question` returns, outside of a request; it changes nothing. Raises Unavailable for an outage."""
    begin_request()
    try:
        try:
            return question()
        except Exception as error:
            if not may_be_repeated(error):
                raise
        return question()
    except Error as error:
        if is_outage(error):
            raise refusal(error) from error
        raise


@contextmanager
def interruptible() -> Iterator[None]:
    """Around work of many small steps that may be repeated. Raises Unavailable for an outage."""
    try:
        yield
    except Error as error:
        if is_outage(error):
            raise Unavailable(f"{_reason(error.__cause__)}: what is done so far stays done") from error
        raise


def is_outage(error: BaseException | None) -> bool:
    """Whether the database failed or gave up for a reason other than the statement itself."""
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
    """The error that the caller gets for an outage."""
    if may_have_changed():
        return CommitStateUnknown(
            "The database failed while the change was being made: load the object to see whether it was applied"
        )
    return Unavailable(f"{_reason(error.__cause__)}; nothing was changed. Try again shortly")


def may_be_repeated(error: Exception) -> bool:
    """Whether the failed request has changed nothing and may succeed if it is repeated."""
    return not may_have_changed() and (was_stale(error) or _has_lost_deadlock(error))


def _reason(cause: BaseException | None) -> str:
    if isinstance(cause, LockNotAvailable):
        return "Another request is changing the same object and took too long"
    if isinstance(cause, QueryCanceled):
        return "The database took too long"
    return "The database is not available"


def _has_lost_deadlock(error: Exception) -> bool:
    """Whether PostgreSQL aborted the transaction to resolve a deadlock."""
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    return isinstance(cause, OperationalError) and isinstance(cause.__cause__, DeadlockDetected)


def was_stale(error: Exception) -> bool:
    """Whether `error` is due to a broken connection; closes it, so the next use opens a new one.

    Connections are not checked at the start of each request, because that would cost a query. Nothing of the failed
    request was applied: an interrupted transaction raises Unavailable, and an unknown outcome raises another error.
    """
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    if not is_outage(cause) or connection.connection is None:
        return False
    if connection.in_atomic_block or connection.is_usable():
        return False
    connection.close()
    # after a long wait without an answer, a retry would probably wait as long again
    return not isinstance(getattr(cause, "__cause__", None), Silent)


def _session() -> Any:  # noqa: ANN401 it has an attribute of our engine, which Django's types do not know
    return connection
