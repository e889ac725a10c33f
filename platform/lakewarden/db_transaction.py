"""One transaction around a change, with an honest answer when the database goes away in the middle.

Rows are locked in one order everywhere, so that two changes wait for each other in turn and never both: the server;
who is in which role of a project (an advisory lock); roles, warehouses, namespaces, tables; users; the project; what
is granted, and who is in a role.
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
    """Commit everything inside, or nothing.

    Raises Unavailable when the database failed before the commit was sent (nothing was applied), CommitStateUnknown
    when it failed during the commit itself, or when an earlier transaction of the same request was committed. What
    goes wrong after the commit is logged: the change is made.
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
            logger.exception("The change is committed; what was to follow it failed")
            return
        if not isinstance(error, Error) or not is_outage(error):
            raise
        if finished and outermost:
            raise CommitStateUnknown(
                "The database failed during the commit of the change: load the object to see whether it was applied"
            ) from error
        raise refusal(error) from error


def after_commit(follow_up: Callable[[], None]) -> None:
    """Have `follow_up` called when the open transaction is committed; what it raises is logged, and stops no other."""
    transaction.on_commit(follow_up, robust=True)
