"""Carries out commits to single tables, those that arrive together in groups."""

import asyncio
from itertools import count
from typing import Final
from uuid import UUID

from catalog.models import Tabular
from catalog.services.commit_writer import bases, file_threads
from catalog.services.commit_writer.chains import Asked, Chain, build, tell_all
from catalog.services.commit_writer.locked_attempt import LockedAttempts
from catalog.services.commit_writer.swaps import SWAPS, Repeated, Swap
from catalog.services.pointer import Commit, Stored, keep_recent, own_files
from lakewarden import config
from lakewarden.errors import CommitStateUnknown, Unavailable
from lakewarden.hot.batches import Turns

MOST_IN_GROUP: Final = 32
LARGEST_ASKED: Final = 32 * 1024
"""Bytes of requirements and updates: larger ones would block the event loop for too long."""
MOST_ATTEMPTS: Final = 3
LOCKED_GROUPS: Final = 8
"""After a group lost a race to another process, so many groups lock the row first: further races are likely."""

_Key = tuple[str, UUID]


async def commit(one: Commit) -> Stored | None:
    """The state after the commit; None if the commit must take the ordinary path, and nothing was done.

    Raises the same errors as the ordinary path. Called on the event loop, with a row that was read for this request.
    """
    if one.granted.target.kind != Tabular.Kind.TABLE or one.size > LARGEST_ASKED:
        return None
    return await WRITER.commit(one)


class CommitWriter:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._lanes: dict[UUID, _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = count()
        self._keys: dict[_Key, asyncio.Future[Stored | None]] = {}
        self._locked_attempts = LockedAttempts()

    async def commit(self, one: Commit) -> Stored | None:
        loop = asyncio.get_running_loop()
        asked = Asked(one, next(self._numbers), loop.create_future())
        key = _key(one)
        if key is not None:
            if (earlier := self._keys.get(key)) is not None:
                await asyncio.wait({earlier})
                return None  # the ordinary path finds its outcome
            self._keys[key] = asked.outcome
            asked.outcome.add_done_callback(lambda _: self._keys.pop(key, None))
        self._put(asked)
        too_late = loop.call_later(config.current().database.lock_timeout_s, _refuse, asked)
        try:
            return await asked.outcome
        finally:
            too_late.cancel()

    def _put(self, asked: Asked) -> None:
        identifier = asked.commit.granted.target.id
        lane = self._lanes.get(identifier)
        if lane is not None:
            lane.put(asked)
            return
        lane = self._lanes[identifier] = _Lane(self._locked_attempts)
        lane.put(asked)
        task = asyncio.create_task(self._run(identifier, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, identifier: UUID, lane: "_Lane") -> None:
        try:
            await lane.run()
        finally:
            del self._lanes[identifier]


class _Lane:
    """The commits to one table, group by group."""

    def __init__(self, locked_attempts: LockedAttempts) -> None:
        self._locked_attempts = locked_attempts
        self._waiting: Turns[Asked] = Turns()
        self._locked_groups = 0

    def put(self, asked: Asked) -> None:
        self._waiting.put(asked.caller, asked)

    async def run(self) -> None:
        while self._waiting:
            group = self._next()
            try:
                if group:
                    await self._carry_out(group)
            except Exception as error:  # noqa: BLE001 every waiting request must get an outcome, whatever the error
                tell_all(group, error)

    def _next(self) -> list[Asked]:
        """The next commits in turn; those that were authorized under another name or epoch than the newest get None."""
        taken: list[Asked] = []
        while self._waiting and len(taken) < MOST_IN_GROUP:
            each = self._waiting.take()
            if not each.outcome.done():
                each.has_begun = True
                taken.append(each)
        if not taken:
            return []
        place = max(taken, key=lambda each: each.number).place
        tell_all([each for each in taken if each.place != place], None)
        return [each for each in taken if each.place == place]

    async def _carry_out(self, group: list[Asked]) -> None:
        known = max(group, key=lambda each: each.number).commit.granted.target
        # nobody holds a row while a verifier answers
        is_verified = any(each.is_verified for each in group)
        if self._locked_groups and not is_verified:
            self._locked_groups -= 1
            await self._carry_out_locked(group, known)
            return
        base = await bases.newest(known)
        for _ in range(MOST_ATTEMPTS if base else 0):
            assert base is not None  # noqa: S101 for the type
            chain = await build(base, group)
            if not chain.changes:
                chain.tell()
                return
            group = [step.asked for step in chain.steps]
            try:
                outcome = await SWAPS.do(chain, caller=group[0].caller)
            except CommitStateUnknown as error:
                chain.tell_unknown(error)
                return
            if outcome is Swap.DONE:
                self._end(chain)
                return
            chain.discard()
            if outcome is Swap.LOST:
                bases.forget(known)
                if is_verified:
                    base = await bases.newest(known)
                    if base is None:
                        break
                    continue
                self._locked_groups = LOCKED_GROUPS
                await self._carry_out_locked(group, known)
                return
            if not isinstance(outcome, Repeated):
                break
            repeated = {id(chain.changes[at][0].asked) for at in outcome.changes}
            tell_all([each for each in group if id(each) in repeated], None)
            group = [each for each in group if id(each) not in repeated]
        tell_all(group, None)

    async def _carry_out_locked(self, group: list[Asked], known: Tabular) -> None:
        chain = await self._locked_attempts.carry_out(group, known)
        if chain is not None:
            self._end(chain)

    def _end(self, chain: Chain) -> None:
        if chain.changes:
            bases.remember(chain.tip)
            keep_recent(chain.tip)
        chain.tell()
        for _, new, state in chain.changes:
            if new.obsolete:
                warehouse = state.tabular.namespace.warehouse
                file_threads.discard(warehouse, own_files(new.obsolete, state.tabular))


def _refuse(asked: Asked) -> None:
    if not asked.has_begun:
        asked.tell(Unavailable("Other changes of the same object took too long; nothing was changed. Try again"))


def _key(one: Commit) -> _Key | None:
    context = one.granted.context
    return None if context.idempotency is None else (context.caller.id, context.idempotency.key)


WRITER: Final = CommitWriter()
