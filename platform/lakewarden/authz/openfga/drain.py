"""Applies the logged changes of the ledger to OpenFGA: in order, each at least once, one process at a time."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import psycopg

from lakewarden import config
from lakewarden.authz.openfga.client import MOST_WRITTEN, OpenFga, unavailable
from lakewarden.authz.openfga.tuples import Entry, RelationTuple
from lakewarden.postgres import limits
from lakewarden.postgres.opening import open_one

logger = logging.getLogger(__name__)

Connection = psycopg.Connection[tuple[Any, ...]]

LOCK: Final = 0x6C6B6664
"""The advisory lock that a process holds while it writes to the store."""


class Drain:
    """Has a database connection of its own, so it does not see changes of an open transaction before the commit.

    `client` returns the client of the store; it is called when there is something to write.
    """

    def __init__(self, client: Callable[[], OpenFga], *, patience_s: float) -> None:
        self._client = client
        self._patience_s = patience_s
        self._turn = threading.Lock()
        self._connection: Connection | None = None

    def settle(self, *, within_s: float | None = None) -> int:
        """Apply all committed changes; returns how many there were.

        Raises Unavailable if that is not possible (within `within_s` seconds, if given); the rest stays in the log.
        """
        if not self._turn.acquire(timeout=self._patience_s):
            raise unavailable("changes of rights are being applied")
        try:
            return self._settled(None if within_s is None else time.monotonic() + within_s)
        except psycopg.errors.LockNotAvailable as error:
            raise unavailable("another process is applying changes of rights") from error
        except psycopg.Error as error:
            logger.warning("The log of changes cannot be read: %s", error)
            self._forget()
            raise unavailable("the log of changes cannot be read") from error
        finally:
            self._turn.release()

    def close(self) -> None:
        with self._turn:
            self._forget()

    def _settled(self, deadline: float | None) -> int:
        applied = 0
        while True:
            count = self._next()
            applied += count
            if count < MOST_WRITTEN:
                return applied
            if deadline is not None and time.monotonic() > deadline:
                raise unavailable(f"{applied} changes of rights were applied, and there may be more")

    def _next(self) -> int:
        """Apply the oldest changes and delete them from the log, in one transaction, which also holds the lock."""
        with exclusively(self._open()) as connection:
            return apply_oldest(connection, self._client())

    def _open(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            try:
                self._connection.execute("select 1")
            except psycopg.OperationalError:
                self._forget()  # the database was restarted meanwhile
            else:
                return self._connection
        self._connection = connect(self._patience_s)
        return self._connection

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def connect(patience_s: float) -> Connection:
    """Open a connection to the catalog's database; it waits for locks no longer than `patience_s` seconds."""
    # OpenFGA is called within the transaction, which is idle for the time of a few calls
    allowed = replace(limits.current(), lock_s=patience_s, idle_in_transaction_s=max(15.0, 4 * patience_s))
    return open_one(config.current().database, allowed, name="lakewarden openfga")


@contextmanager
def exclusively(connection: Connection) -> Iterator[Connection]:
    """A transaction during which no other process writes to the store."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", [LOCK])
        yield connection


def apply_oldest(connection: Connection, client: OpenFga) -> int:
    """Apply the oldest changes, as many as fit in one write, and delete them; returns how many. Needs `exclusively`."""
    rows = connection.execute(_OLDEST, [MOST_WRITTEN]).fetchall()
    if rows:
        writes, deletes = _outcome([(operation, Entry(*entry)) for _, operation, *entry in rows])
        client.write(writes, deletes)
        connection.execute(_APPLIED, [[sequence for sequence, *_ in rows]])
    return len(rows)


def _outcome(changes: Sequence[tuple[str, Entry]]) -> tuple[list[RelationTuple], list[RelationTuple]]:
    """The last operation of each tuple: OpenFGA accepts each tuple only once in a write."""
    last = {entry.to_tuple(): operation for operation, entry in changes}
    writes = [each for each, operation in last.items() if each is not None and operation == "write"]
    deletes = [each for each, operation in last.items() if each is not None and operation == "delete"]
    return writes, deletes


_OLDEST = """
    select sequence, operation, principal_id, relation, object_type, object_id
    from authz_change order by sequence limit %s
"""
_APPLIED = "delete from authz_change where sequence = any(%s::bigint[])"
