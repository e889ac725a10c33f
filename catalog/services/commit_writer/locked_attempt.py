"""A group's second attempt, after another process changed or locked the row: it waits for the lock of the row."""

import asyncio
from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg.errors import LockNotAvailable

from catalog.models import Tabular
from catalog.services.commit_writer import bases
from catalog.services.commit_writer.chains import Asked, Chain, build, tell_all
from catalog.services.commit_writer.swaps import Swap, swap_on
from catalog.services.shared_statements import is_refusal, unknown
from lakewarden.errors import Unavailable
from lakewarden.hot.connections import connection
from lakewarden.postgres.bounded import SILENCE, AsyncBounded

MOST: Final = 4
"""Attempts that may wait at a time; each uses a database connection meanwhile."""


class _Abandoned(Exception):
    """Nothing is to be committed here."""


class LockedAttempts:
    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MOST)

    async def carry_out(self, group: Sequence[Asked], known: Tabular) -> Chain | None:
        """The committed chain; None if all commits of the group have their outcomes already."""
        if self._places.locked():
            tell_all(group, None)
            return None
        async with self._places:
            return await _Attempt(group, known).carry_out()


class _Attempt:
    def __init__(self, group: Sequence[Asked], known: Tabular) -> None:
        self._group = group
        self._known = known
        self._chain: Chain | None = None
        self._sent_commit = False

    async def carry_out(self) -> Chain | None:
        try:
            async with connection() as usable:
                await usable.execute("begin")
                chain = await self._swap(usable)
                self._sent_commit = True
                await usable.execute("commit")
        except (psycopg.Error, _Abandoned) as error:
            self._tell(error)
            return None
        return chain

    async def _swap(self, usable: AsyncBounded) -> Chain:
        base = await bases.locked(usable, self._known)
        if base is None:
            raise _Abandoned
        self._chain = chain = await build(base, self._group)
        if chain.changes and await swap_on(usable, [chain]) != [Swap.DONE]:
            raise _Abandoned
        return chain

    def _tell(self, error: psycopg.Error | _Abandoned) -> None:
        if self._sent_commit and isinstance(error, psycopg.Error) and not is_refusal(error) and self._chain:
            self._chain.tell_unknown(unknown(error))
            return
        if self._chain:
            self._chain.discard()
        told = None
        if isinstance(error, LockNotAvailable):
            told = Unavailable("Another request is changing the same object and took too long; nothing was changed")
        elif isinstance(error, SILENCE):
            told = Unavailable("The database does not answer; nothing was changed. Try again shortly")
        tell_all(self._group, told)
