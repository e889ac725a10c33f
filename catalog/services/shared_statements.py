"""Statements that do the work of several callers: who gets which outcome if the database refuses or does not answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

import psycopg
from psycopg.errors import LockNotAvailable, QueryCanceled

from catalog.services.namespaces import TREE_LOCK
from lakewarden.authz.ledger import change_log
from lakewarden.errors import CommitStateUnknown
from lakewarden.hot.batches import Batches
from lakewarden.hot.connections import connection
from lakewarden.hot.statements import Statement
from lakewarden.postgres.bounded import AsyncBounded

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

MOST: Final = 64
"""Objects in a statement."""
_PATIENCE_MS: Final = 100
"""How long a statement waits for what another transaction has locked; short, because all its callers wait."""
STILL: Final = f"""
    patience as materialized (
        select set_config('lock_timeout', '{_PATIENCE_MS}', true)
    ),
    still as materialized (
        select tree from (select distinct tree from asked) each, patience
        where pg_try_advisory_xact_lock_shared({TREE_LOCK}, each.tree)
    )
"""  # noqa: S608 constants
"""Follows `asked` in a `with` list: those of its trees (`namespaces.tree_of`) that nobody moves or drops a part of."""

_telling: set[asyncio.Task[None]] = set()


def tell_followers() -> None:
    """After a statement that has logged changes of grants.

    Does not wait: the next check with OpenFGA applies all changes first, if this has not happened by then.
    """
    if change_log.are_logged():
        task = asyncio.create_task(_TELLINGS.do(None, caller=""))
        _telling.add(task)
        task.add_done_callback(_telling.discard)


async def _tell(changes: Sequence[None]) -> Sequence[None]:
    """Runs in a thread. It may miss a change that is committed meanwhile, so that change leads to another run."""
    await asyncio.to_thread(change_log.tell)
    return changes


_TELLINGS: Final[Batches[None, None]] = Batches(_tell, most=MOST)


async def executed(
    statement: Statement,
    usable: AsyncBounded,
    parameters: Mapping[str, object],
    *,
    count: int,
    changes_grants: bool = True,
) -> list[bool]:
    """Whether each of `count` items was changed: the statement's row begins with the numbers of those that were.

    Raises psycopg.Error.
    """
    numbers, _ = await statement.fetch_one(usable, parameters)
    changed = set(numbers or ())
    if changed and changes_grants:
        tell_followers()
    return [number in changed for number in range(count)]


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
