"""Appends what was kept to the log: in order, once, and only what its senders may still do."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ingest.services import log, targets
from ingest.services.appender import BATCHES, REQUESTS, Item
from ingest.services.fallback import refusals
from ingest.services.fallback.records import Chain, Kept
from ingest.services.kafka import placing
from ingest.services.log import Batch, Outcome, Verdict
from ingest.services.statements import LogUnavailable, Unstorable, run
from ingest.services.targets import Target
from lakewarden import config
from lakewarden.errors import BadRequest, Conflict, Forbidden, LakewardenError, NotFound
from lakewarden.hot.sessions import Lookup
from lakewarden.http.request_threads import ask

logger = logging.getLogger(__name__)

_STORED: Final = frozenset({Verdict.APPENDED, Verdict.DUPLICATE, Verdict.PERSISTED})
_DENIED: Final = (BadRequest, Conflict, Forbidden, NotFound)
_ATTEMPTS: Final = 4
_FIRST: Final = -(2**63)


class NotNow(Exception):
    """The log answers, but does not take what is of this warehouse; the message says why."""


@dataclass(slots=True)
class Group:
    """Records of a file, which end at the offset `end`. `settled` are the indexes of those that are dealt with,
    `last_position` is the highest in the log.
    """

    kept: list[Kept]
    end: int
    settled: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    last_position: int = 0


async def ask_whether_the_log_is_back(group: Group) -> None:
    """Raises LogUnavailable."""
    if group.kept:
        await log.head(group.kept[0].warehouse_id)
        await placing.ask_whether_it_is_back()


async def replay(group: Group, folder: Path) -> None:
    """All of it is in the log, or set aside with the reason.

    Raises LogUnavailable, NotNow, FallbackFailed: then the rest is to be replayed again.
    """
    chains: dict[Chain, list[int]] = {}
    for index, each in enumerate(group.kept):
        if index not in group.settled:
            chains.setdefault(each.chain, []).append(index)
    done = await asyncio.gather(*(_in_order(group, each, folder) for each in chains.values()), return_exceptions=True)
    for outcome in done:
        if outcome is not None:
            raise outcome


async def count(group: Group) -> None:
    """Note for `/analytics/status` how many came through a fallback file; not exact if the process ends meanwhile."""
    try:
        appended = len(group.kept) - len(group.refused)
        await run(_COUNT, [[group.kept[0].warehouse_id], [appended], [group.last_position]])
    except LogUnavailable as error:
        logger.warning("Batches of the fallback file were not counted: %s", error)


async def _in_order(group: Group, indexes: Sequence[int], folder: Path) -> None:
    for index in indexes:
        kept = group.kept[index]
        reason = await _appended(kept, group)
        if reason is not None:
            await asyncio.to_thread(refusals.set_aside, kept, reason, folder)
            group.refused.add(index)
        group.settled.add(index)


async def _appended(kept: Kept, group: Group) -> str | None:
    """None, or why it cannot be appended. Raises LogUnavailable, NotNow."""
    chosen = tuple(each.target() for each in kept.targets)
    for _ in range(_ATTEMPTS):
        try:
            outcome = await _append(kept, chosen)
        except Unstorable as error:
            return f"it cannot be stored: {error}"
        match outcome.verdict:
            case verdict if verdict in _STORED:
                group.last_position = max(group.last_position, outcome.position or 0)
                return None
            case Verdict.GAP:
                return f"number {outcome.expected} of the source is missing in the log"
            case Verdict.DIFFERENT:
                return "the log has other events under this number or key"
            case Verdict.FULL:
                raise NotNow("the buffer is full: the pipeline has to write tables first")
        try:
            chosen = await _decided_again(kept)
        except _DENIED as error:
            return error.message
        except LakewardenError as error:
            raise NotNow(error.message) from error
        await _opened(kept)
    raise NotNow("rights or tables change all the time")


async def _append(kept: Kept, chosen: tuple[Target, ...]) -> Outcome:
    if kept.batch is not None:
        return await BATCHES.append(kept.warehouse_id, Item(kept.batch, chosen))
    if kept.request is not None:
        sent = replace(kept.request, is_acknowledged=True)
        return await REQUESTS.append(kept.warehouse_id, Item(sent, chosen))
    raise ValueError("A record holds a batch or a request")


async def _decided_again(kept: Kept) -> tuple[Target, ...]:
    """Something has changed since: what counts is what the sender may do now. Raises LakewardenError."""
    context, default = kept.context(), config.current().ingest.namespace
    names = [each.said["table"] for each in kept.targets]

    def decide() -> tuple[Target, ...]:
        return tuple(targets.decide(context, kept.warehouse_id, name, default=default) for name in names)

    return await ask(context.caller.id, decide)


async def _opened(kept: Kept) -> None:
    """The source may have been forgotten. Raises LogUnavailable."""
    if not isinstance(kept.sent, Batch):
        await log.begin(kept.warehouse_id)
        return
    await log.open_source(
        kept.warehouse_id,
        principal=kept.sent.principal,
        source_id=kept.sent.source_id,
        shard_name="",
        last_acked=max(kept.sent.sequence_number - 1, _FIRST),
    )


_COUNT: Final = Lookup("""
    update ingest_log_head h
    set fallback_batches = h.fallback_batches + g.batches,
        fallback_position = greatest(h.fallback_position, g.last_position)
    from unnest(%s::uuid[], %s::bigint[], %s::bigint[]) as g(warehouse_id, batches, last_position)
    where h.warehouse_id = g.warehouse_id
""")
