"""Batches that arrive while others are being appended form the next group of their warehouse: one commit for many."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar
from uuid import UUID

from ingest.metrics import APPEND_SECONDS
from ingest.services.kafka import placing
from ingest.services.log import STALE, Batch, Decided, Outcome, Request
from ingest.services.statements import Unstorable
from ingest.services.targets import Target
from lakewarden import config
from lakewarden.hot.batches import Batches

Sent = TypeVar("Sent", Batch, Request)

_GROUP_BYTES: Final = 8 * 1024 * 1024
_AT_LEAST: Final = 64 * 1024  # bytes that each batch counts for: a group has at most 128


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


_Append = Callable[..., Awaitable[Sequence[Outcome | Exception]]]


class Appender(Generic[Sent]):
    """Belongs to one event loop. `order` sorts a group as the statement needs it."""

    def __init__(self, append: _Append, order: Callable[[Item[Sent]], tuple[object, ...]] | None = None) -> None:
        self._append = append
        self._order: Callable[[Item[Sent]], tuple[object, ...]] | None = order
        self._groups: dict[UUID, Batches[Item[Sent], Outcome]] = {}

    async def append(self, warehouse_id: UUID, item: Item[Sent]) -> Outcome:
        """The outcome of its group, in which others of the warehouse may be. Raises LogUnavailable, Unstorable."""
        groups = self._groups.get(warehouse_id)
        if groups is None:
            groups = self._groups[warehouse_id] = Batches(
                partial(self._carry_out, warehouse_id),
                most=_GROUP_BYTES,
                weigh=lambda each: max(each.sent.size, _AT_LEAST),
            )
        return await groups.do(item, caller=item.sent.principal)

    async def _carry_out(self, warehouse_id: UUID, items: Sequence[Item[Sent]]) -> list[Outcome | Exception]:
        epoch = max(each.epoch for each in items)
        outcomes: dict[int, Outcome | Exception] = dict.fromkeys(range(len(items)), STALE)
        chosen = [
            number for number, each in enumerate(items) if each.epoch == epoch and each.is_of_one_epoch
        ]  # the others were decided before a change that these know of
        if self._order is not None:
            order = self._order
            chosen.sort(key=lambda number: order(items[number]))
        began = time.perf_counter()
        found = await self._each(warehouse_id, [items[number] for number in chosen])
        APPEND_SECONDS.of(warehouse_id).observe(time.perf_counter() - began)
        outcomes.update(zip(chosen, found, strict=True))
        return [outcomes[number] for number in range(len(items))]

    async def _each(self, warehouse_id: UUID, items: Sequence[Item[Sent]]) -> Sequence[Outcome | Exception]:
        """All at once; if the database refuses a value, one after the other, so that it harms only its sender."""
        if not items:
            return []
        try:
            return await self._append(
                warehouse_id,
                [each.sent for each in items],
                capacity=config.current().ingest.buffer_bytes,
                decided=Decided(items[0].epoch, frozenset(target.place for each in items for target in each.targets)),
            )
        except Unstorable as error:
            if len(items) == 1:
                return [error]
            return [outcome for each in items for outcome in await self._each(warehouse_id, [each])]


BATCHES: Final[Appender[Batch]] = Appender(
    placing.append, lambda item: (item.sent.principal, item.sent.source_id, item.sent.sequence_number)
)
REQUESTS: Final[Appender[Request]] = Appender(placing.append_requests)
