"""Advisory locks of PostgreSQL that keep a flush and maintenance of the same table apart.

A lock belongs to a session and ends with it, so that a process that was killed holds none.
"""

import hashlib
from collections.abc import Sequence
from typing import Final
from uuid import UUID

TABLE_LOCKS: Final = 0x6C776D74
"""The first number of these locks."""

TRY: Final = "select pg_try_advisory_lock(%s, %s)"
RELEASE: Final = "select pg_advisory_unlock(%s, %s)"


def lock_key(warehouse: UUID, table: Sequence[str]) -> tuple[int, int]:
    """The two numbers of a table's lock. Tables that share them only wait for each other needlessly."""
    name = "\x1f".join((str(warehouse), *table)).encode()
    return TABLE_LOCKS, int.from_bytes(hashlib.blake2b(name, digest_size=4).digest(), signed=True)
