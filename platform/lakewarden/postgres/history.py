"""Whether a database is still the one whose rows this process remembers.

A standby that is promoted, or a backup that is restored, may lack the last changes, and then gives their versions and
epochs again, to other content. So what a process has learnt of one history is not true of another, even if the numbers
are equal, and nothing may be used of both.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from threading import Lock
from typing import Final

logger = logging.getLogger(__name__)

ENDED: Final = 75
"""Exit code of a process that ended because the history has changed: it is to be started again (EX_TEMPFAIL)."""

TEXT: Final = """
    select (select system_identifier from pg_control_system())::text,
           (select oid from pg_database where datname = current_database())::text,
           left(pg_walfile_name(pg_current_wal_lsn()), 8)
"""
"""The cluster, the database in it, and the timeline, which a promotion and a recovery to a point in time change."""

PLAIN_TEXT: Final = """
    select ''::text, (select oid from pg_database where datname = current_database())::text, ''::text
"""
"""For servers that do not report it, such as those whose replicas share the storage and lose nothing."""

Told = tuple[str, str, str]

_lock = Lock()
_known: str | None = None


def _forget(found: str) -> None:
    """What runs once remembers nothing."""


_when_forked: Callable[[str], None] = _forget


def mark() -> str:
    """A short name of the history that this process has last seen; it is part of entity tags, which clients keep."""
    return _known or ""


def end_process_when_forked() -> None:
    """From now on, for processes that remember: end immediately, before anything of the other history is read."""
    global _when_forked  # noqa: PLW0603 one history for each process
    _when_forked = _end


def seen(told: Told) -> None:
    """Note what a new session was told; must be called before the session is used."""
    global _known
    found = hashlib.sha256(".".join(told).encode()).hexdigest()[:8]
    with _lock:
        before, _known = _known, found
    if before is not None and before != found:
        _when_forked(found)


def _end(found: str) -> None:
    logger.critical(
        "the database is another one, or its history has changed (%s): a standby was promoted or a backup restored. "
        "This process ends, so that nothing it remembers is used, and is to be started again",
        found,
    )
    os._exit(ENDED)
