"""The transaction of a change, which reports correctly whether anything was applied if the database fails.

All transactions lock in one global order, so two of them never deadlock: the server's row; the memberships of a
project (an advisory lock); tag definitions, roles, warehouses, namespaces, tables; users; the project's row; grants and
memberships.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error, connection, transaction

from lakewarden.database import is_outage, refusal
from lakewarden.errors import CommitStateUnknown

logger = logging.getLogger(__name__)


@contextmanager
def changing() -> Iterator[None]:
    """Run the body of the `with` in a transaction.

    Raises Unavailable if the database failed before the commit was sent (nothing was applied), CommitStateUnknown if it
    failed during the commit, or if an earlier transaction of the same request was committed. An error after the commit
    is only logged, because the change is made.
    """
    outermost = not connection.in_atomic_block
    finished, committed = False, []
    try:
        with transaction.atomic():
            transaction.on_commit(lambda: committed.append(True))
            yield
            finished = True
    except Exception as error:
        if committed:
            logger.exception("The change is committed, but an action after the commit failed")
            return
        if not isinstance(error, Error) or not is_outage(error):
            raise
        if finished and outermost:
            raise CommitStateUnknown(
                "The database failed during the commit of the change: load the object to see whether it was applied"
            ) from error
        raise refusal(error) from error


def after_commit(follow_up: Callable[[], None]) -> None:
    """Call `follow_up` after the open transaction is committed; an error in it is logged and affects no other one."""
    transaction.on_commit(follow_up, robust=True)
