"""Batches that arrive while others are being appended form the next group of their warehouse: one commit for many."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar
from uuid import UUID

from ingest.metrics import APPEND_SECONDS
from ingest.services import log
from ingest.services.log import Batch, Decided, Outcome, Request, Verdict
from ingest.services.targets import Target
from lakewarden import config
from lakewarden.hot.batches import Batches

Sent = TypeVar("Sent", Batch, Request)

_GROUP_BYTES: Final = 8 * 1024 * 1024
_AT_LEAST: Final = 64 * 1024  # bytes that each batch counts for: a group has at most 128
STALE: Final = Outcome(Verdict.UNKNOWN, None, None, 0)


@dataclass(frozen=True, slots=True)
class Item(Generic[Sent]):
    """What is to be appended, and the decisions of its sender's rights to do so."""

    sent: Sent
    targets: tuple[Target, ...]

    @property
    def epoch(self) -> int:
        return max(each.epoch for each in self.targets)

    @property
    def is_of_one_epoch(self) -> bool:
        return len({each.epoch for each in self.targets}) == 1


_Append = Callable[..., Awaitable[list[Outcome]]]


class Appender(Generic[Sent]):
    """Belongs to one event loop. `order` sorts a group as the statement needs it."""

    def __init__(self, append: _Append, order: Callable[[Item[Sent]], tuple[object, ...]] | None = None) -> None:
        self._append = append
        self._order: Callable[[Item[Sent]], tuple[object, ...]] | None = order
        self._groups: dict[UUID, Batches[Item[Sent], Outcome]] = {}

    async def append(self, warehouse_id: UUID, item: Item[Sent]) -> Outcome:
        """The outcome of its group, in which others of the warehouse may be. Raises LogUnavailable."""
        groups = self._groups.get(warehouse_id)
        if groups is None:
            groups = self._groups[warehouse_id] = Batches(
                partial(self._carry_out, warehouse_id),
                most=_GROUP_BYTES,
                weigh=lambda each: max(each.sent.size, _AT_LEAST),
            )
        return await groups.do(item, caller=item.sent.principal)

    async def _carry_out(self, warehouse_id: UUID, items: Sequence[Item[Sent]]) -> list[Outcome]:
        epoch = max(each.epoch for each in items)
        outcomes = dict.fromkeys(range(len(items)), STALE)
        chosen = [
            number for number, each in enumerate(items) if each.epoch == epoch and each.is_of_one_epoch
        ]  # the others were decided before a change that these know of
        if self._order is not None:
            order = self._order
            chosen.sort(key=lambda number: order(items[number]))
        places = frozenset(target.place for number in chosen for target in items[number].targets)
        began = time.perf_counter()
        found = await self._append(
            warehouse_id,
            [items[number].sent for number in chosen],
            capacity=config.current().ingest.buffer_bytes,
            decided=Decided(epoch, places),
        )
        APPEND_SECONDS.observe(time.perf_counter() - began)
        outcomes.update(zip(chosen, found, strict=True))
        return [outcomes[number] for number in range(len(items))]


BATCHES: Final[Appender[Batch]] = Appender(
    log.append, lambda item: (item.sent.principal, item.sent.source_id, item.sent.sequence_number)
)
REQUESTS: Final[Appender[Request]] = Appender(log.append_requests)
