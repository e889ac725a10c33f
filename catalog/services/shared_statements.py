"""Statements that do the work of several callers: who gets which outcome if the database refuses or does not answer."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import psycopg
from psycopg.errors import LockNotAvailable, QueryCanceled

from lakewarden.errors import CommitStateUnknown
from lakewarden.hot.connections import connection
from lakewarden.postgres.bounded import AsyncBounded

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


async def together_or_each(
    items: Sequence[Item],
    execute: Callable[[AsyncBounded, Sequence[Item]], Awaitable[Sequence[Outcome]]],
    *,
    refused: Outcome,
) -> Sequence[Outcome | Exception]:
    """The outcome of each item: from one statement for all, or from one for each if the database refused that one.

    `refused` is the outcome of an item that the database refuses. CommitStateUnknown if the database did not answer.
    """
    has_begun = False
    try:
        async with connection() as usable:
            has_begun = True
            return [*await execute(usable, items)]
    except psycopg.Error as error:
        if has_begun and not is_refusal(error):
            return [unknown(error)] * len(items)
        if not has_begun or len(items) == 1 or _took_too_long(error):
            return [refused] * len(items)
    # one of them may be the cause, and the others must not fail with it
    return [outcome for each in items for outcome in await together_or_each([each], execute, refused=refused)]


def is_refusal(error: psycopg.Error) -> bool:
    """Whether the database itself said that it did not apply the statement, and is still there."""
    return error.sqlstate is not None and not error.sqlstate.startswith(("08", "57P"))


def unknown(error: psycopg.Error) -> CommitStateUnknown:
    """The error for changes that were sent to a database which then did not answer."""
    raised = CommitStateUnknown(
        "The database failed during the commit of the change: load the object to see whether it was applied"
    )
    raised.__cause__ = error
    return raised


def _took_too_long(error: psycopg.Error) -> bool:
    """Whether it waited in vain: to try each item of a batch by itself would take as long for each."""
    return isinstance(error, LockNotAvailable | QueryCanceled)
