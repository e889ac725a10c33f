"""Detects a pooler that assigns a session of the database to another client for each transaction.

Behind such a pooler, a client's settings, advisory locks, LISTEN and prepared statements end up with other clients.
"""

from contextlib import closing
from typing import Final

import psycopg
from psycopg.errors import ProtocolViolation

from lakewarden.config import DatabaseConfig
from lakewarden.postgres.bounded import Bounded
from lakewarden.postgres.opening import open_plain

ROUNDS: Final = 5
SENTENCE: Final = (
    "between this process and PostgreSQL is a pooler that lends sessions out by transaction (pgbouncer: pool_mode = "
    "transaction or statement): the statements of one request could run in another's session"
)
REMEDY: Final = (
    "set pool_mode = session for Lakewarden's database in the pooler, or give PostgreSQL's own address in "
    "LAKEWARDEN__DATABASE__URL"
)


def lends_by_transaction(settings: DatabaseConfig) -> bool:
    """Whether two connections share sessions of the database. Raises psycopg.Error if the database does not answer."""
    with closing(open_plain(settings)) as first, closing(open_plain(settings)) as second:
        try:
            return any(_share(first, second) for _ in range(ROUNDS))
        except ProtocolViolation:
            return True  # the pooler refuses transactions: it assigns sessions by statement


def is_pooled(connection: Bounded) -> bool:
    """Whether there is any pooler: the process id that it reports differs from that of the database's session."""
    return connection.info.backend_pid != _session_of(connection)


def _share(first: Bounded, second: Bounded) -> bool:
    """Whether the first connection changes its session while the second is in a transaction."""
    before = _session_of(first)
    with second.transaction(force_rollback=True):
        return _session_of(second) == before or _session_of(first) != before


def _session_of(connection: psycopg.Connection) -> int:
    row = connection.execute("select pg_backend_pid()", prepare=False).fetchone()
    return int(row[0]) if row else 0
