"""Keeps batches in fallback files of this process while the log does not answer, and has them replayed.

Each warehouse has a file of its own, so one that cannot be replayed, because its buffer is full, delays no other.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from ingest.services.appender import Item
from ingest.services.fallback import records, replay
from ingest.services.fallback.chains import Chains, number_of
from ingest.services.fallback.file import SUFFIX, FallbackFailed, FallbackFile, FallbackFull, framed
from ingest.services.fallback.records import Chain, Kept
from ingest.services.log import Batch, Outcome, Request, Verdict
from ingest.services.statements import LogUnavailable
from lakewarden import config
from lakewarden.context import CallerKey
from lakewarden.hot.batches import Batches

logger = logging.getLogger(__name__)

_RETRY_S: Final = 1.0
_GROUP: Final = 4 * 1024 * 1024
_LEAST_GROUP: Final = 64 * 1024
_SHARE_PERCENT: Final = 75  # of what others leave free
_AT_LEAST: Final = 1024  # bytes that each counts for: what is known of it takes memory, too


@dataclass(frozen=True, slots=True)
class _Frame:
    chain: Chain
    number: int
    content: bytes


class Fallback:
    """Of this process. Belongs to one event loop."""

    def __init__(self, folder: Path, *, most: int) -> None:
        self._folder = folder
        self._most = most
        self._chains = Chains()
        self._own: dict[UUID, FallbackFile] = {}
        self._inherited: dict[UUID, list[FallbackFile]] = {}
        self._busy = asyncio.Lock()  # one thread at a time uses a file
        self._writer: Batches[_Frame, None] = Batches(self._write, most=_GROUP, weigh=lambda each: len(each.content))
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._groups: dict[UUID, replay.Group] = {}
        self._is_log_gone = False
        self._reserved = Counter[UUID]()
        self._projects: dict[UUID, str] = {}
        self.refused = Counter[UUID]()

    @property
    def waiting_bytes(self) -> int:
        return sum(map(self.waiting_bytes_of, self._own.keys() | self._inherited.keys()))

    def waiting_bytes_of(self, warehouse_id: UUID) -> int:
        own = self._own.get(warehouse_id)
        return sum(each.waiting for each in [*self._inherited.get(warehouse_id, ()), *([] if own is None else [own])])

    def waiting(self, warehouse_id: UUID) -> int:
        """Batches and requests of a warehouse that are not in the log yet."""
        return self._chains.by_warehouse[warehouse_id]

    async def recover(self) -> None:
        """Take over what processes before this one have left. To be called once, when the process starts."""
        try:
            async with self._busy:
                found = await asyncio.to_thread(self._adopted)
        except (FallbackFailed, OSError):
            logger.exception("The fallback files in %s cannot be read", self._folder)
            return
        for file, kept in found:
            self._inherited.setdefault(kept[0].warehouse_id, []).append(file)
            self._projects[kept[0].warehouse_id] = kept[0].targets[0].project_id
            for each in kept:
                self._chains.add_recovered(each)
        if self._chains:
            logger.warning("%d bytes of change data wait in fallback files for the log", self.waiting_bytes)
        for warehouse_id in self._inherited:
            self._replay(warehouse_id)

    def note_outage(self, error: LogUnavailable) -> None:
        """From now on batches are kept, until what is there has been replayed."""
        if not self._is_log_gone:
            self._is_log_gone = True
            logger.warning("The log is not available, batches go to the fallback file: %s", str(error).strip())

    async def passes(self, warehouse_id: UUID, sent: Batch | Request) -> bool:
        """Whether it may go to the log, because all of its source before it is there; waits while that is replayed.

        False: it is to be kept, too. Raises FallbackFailed if the replay takes too long.
        """
        chain = records.chain_of(warehouse_id, sent)
        while (waiting := self._chains.find(chain)) is not None:
            if self._is_log_gone:
                return False
            await _settled(waiting.settled)
        return True

    async def settle(self, warehouse_id: UUID, *, principal: str, source_id: str) -> None:
        """Wait until the log has all of a source. Raises FallbackFailed if that takes too long."""
        waiting = self._chains.find((warehouse_id, principal, source_id, ""))
        if waiting is not None:
            await _settled(waiting.settled)

    async def keep(
        self,
        warehouse_id: UUID,
        caller: CallerKey,
        item: Item[Batch] | Item[Request],
        *,
        expected: int | None = None,
    ) -> Outcome:
        """The outcome once it is durable: KEPT, DUPLICATE, DIFFERENT or GAP.

        `expected` is the number that the log expected of the source when it was last asked. Raises FallbackFailed.
        """
        chain, sent = records.chain_of(warehouse_id, item.sent), item.sent
        verdict, following = self._chains.judge(chain, sent, expected)
        if verdict is Verdict.DUPLICATE and (waiting := self._chains.find(chain)) is not None:
            await asyncio.shield(waiting.links[number_of(sent)].durable)
        if verdict is Verdict.APPENDED:
            content = framed(records.encode(warehouse_id, caller, item))
            size = max(len(content), _AT_LEAST)
            self._projects[warehouse_id] = item.targets[0].project_id
            self._ensure_room(self._projects[warehouse_id], size)
            frame = _Frame(chain, number_of(sent), content)
            self._reserved[warehouse_id] += size
            try:
                durable = asyncio.ensure_future(self._writer.do(frame, caller=sent.principal))
                durable.add_done_callback(lambda done: done.cancelled() or done.exception())
                self._chains.add(chain, sent, durable)
                await asyncio.shield(durable)
            finally:
                self._reserved[warehouse_id] -= size
            verdict = Verdict.KEPT
            self._replay(warehouse_id)
        return Outcome(verdict, None, following, self._held(self._projects.get(warehouse_id, "")))

    def _ensure_room(self, project: str, size: int) -> None:
        """One project leaves room for others, whatever it is sent. Raises FallbackFull."""
        free, held = self._most - self._held(), self._held(project)
        if size > free or (held + size) * (100 - _SHARE_PERCENT) > free * _SHARE_PERCENT:
            raise FallbackFull(f"it is full: {held} bytes of the project wait in it for the log")

    def _held(self, project: str | None = None) -> int:
        """Bytes that wait or are being written, of all projects or one."""
        chosen = [each for each, its in self._projects.items() if project in {None, its}]
        return sum(self.waiting_bytes_of(each) + self._reserved[each] for each in chosen)

    async def _write(self, frames: Sequence[_Frame]) -> list[Exception | None]:
        """Each after the one before it of its source: one that follows a failed one fails, too."""
        outcomes: list[Exception | None] = []
        written: dict[UUID, list[bytes]] = {}
        ends: dict[Chain, int] = {}
        for frame in frames:
            waiting = self._chains.find(frame.chain)
            end = ends.get(frame.chain, -1 if waiting is None else waiting.written)
            is_next = waiting is not None and frame.number == end + 1
            outcomes.append(None if is_next else FallbackFailed("the batch before it could not be kept"))
            if is_next:
                ends[frame.chain] = frame.number
                written.setdefault(frame.chain[0], []).append(frame.content)
        failed = {warehouse_id: await self._append(warehouse_id, each) for warehouse_id, each in written.items()}
        outcomes = [failed.get(frame.chain[0]) or each for frame, each in zip(frames, outcomes, strict=True)]
        for frame, outcome in zip(frames, outcomes, strict=True):
            waiting = self._chains.find(frame.chain)
            if waiting is not None and outcome is None:
                waiting.written = frame.number
            else:
                self._chains.remove(frame.chain, frame.number)
        return outcomes

    async def _append(self, warehouse_id: UUID, contents: Sequence[bytes]) -> FallbackFailed | None:
        """None, or why nothing of it was kept."""
        try:
            async with self._busy:
                file = self._own.get(warehouse_id)
                if file is None:
                    file = self._own[warehouse_id] = await asyncio.to_thread(FallbackFile.create, self._folder)
                await asyncio.to_thread(file.append, contents)
        except FallbackFailed as error:
            logger.exception("The fallback file in %s cannot be written", self._folder)
            return error
        return None

    def _adopted(self) -> list[tuple[FallbackFile, list[Kept]]]:
        found = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            file = FallbackFile.adopt(path)
            if file is None:
                continue
            try:
                kept = [records.decode(each) for each in file.all()]
            except msgspec.DecodeError:
                logger.exception("The fallback file %s cannot be read by this release, and stays", path)
                file.close()
                continue
            if kept:
                found.append((file, kept))
            else:
                file.remove()
        return found

    def _replay(self, warehouse_id: UUID) -> None:
        if warehouse_id not in self._tasks:
            self._tasks[warehouse_id] = asyncio.create_task(self._replay_all(warehouse_id))

    async def _replay_all(self, warehouse_id: UUID) -> None:
        """Until nothing of the warehouse waits."""
        while (file := self._next_file(warehouse_id)) is not None:
            try:
                await self._replay_next(warehouse_id, file)
            except LogUnavailable as error:
                self.note_outage(error)
                await asyncio.sleep(_RETRY_S)
            except (replay.NotNow, FallbackFailed) as error:
                logger.warning("The fallback file of warehouse %s cannot be replayed now: %s", warehouse_id, error)
                await asyncio.sleep(_RETRY_S)
            except Exception:  # whatever the reason, what was acknowledged is tried again
                logger.exception("The fallback file of warehouse %s cannot be replayed now", warehouse_id)
                await asyncio.sleep(_RETRY_S)
        del self._tasks[warehouse_id]

    def _next_file(self, warehouse_id: UUID) -> FallbackFile | None:
        """Inherited ones first."""
        inherited = self._inherited.get(warehouse_id)
        return inherited[0] if inherited else self._own.get(warehouse_id)

    async def _replay_next(self, warehouse_id: UUID, file: FallbackFile) -> None:
        """Raises LogUnavailable, NotNow, FallbackFailed: then the same group is gone on with."""
        group = self._groups.get(warehouse_id)
        if group is None:
            most = max(_LEAST_GROUP, _GROUP // len(self._tasks))  # all warehouses together
            async with self._busy:
                contents, offset = await asyncio.to_thread(file.read, most=most)
            group = self._groups[warehouse_id] = replay.Group([records.decode(each) for each in contents], offset)
        await replay.ask_whether_the_log_is_back(group)
        self._is_log_gone = False
        await replay.replay(group, self._folder)
        async with self._busy:
            await asyncio.to_thread(file.mark_replayed, group.end)
            del self._groups[warehouse_id]
            self.refused[warehouse_id] += len(group.refused)
            for each in group.kept:
                self._chains.remove(each.chain, number_of(each.sent))
            if not file.waiting:
                self._forget(warehouse_id, file)
                await asyncio.to_thread(file.remove)
        await replay.count(group)

    def _forget(self, warehouse_id: UUID, file: FallbackFile) -> None:
        if self._own.get(warehouse_id) is file:
            del self._own[warehouse_id]
        else:
            self._inherited[warehouse_id].remove(file)
            if not self._inherited[warehouse_id]:
                del self._inherited[warehouse_id]
        if warehouse_id not in self._own.keys() | self._inherited.keys() and not self._reserved[warehouse_id]:
            self._projects.pop(warehouse_id, None)


async def _settled(settled: asyncio.Event) -> None:
    patience_s = config.current().ingest.replay_patience_s
    try:
        async with asyncio.timeout(patience_s):
            await settled.wait()
    except TimeoutError:
        raise FallbackFailed(f"earlier batches are still being replayed after {patience_s:g} s") from None
