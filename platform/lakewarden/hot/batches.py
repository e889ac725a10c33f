"""Items that arrive on the event loop while a batch is in progress form the next one: no item waits to fill a batch."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Turns(Generic[Item]):
    """Items that wait, taken in turns between callers: one caller's many items do not delay those of others."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Item]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, caller: str, item: Item) -> None:
        self._waiting.setdefault(caller, deque()).append(item)

    def take(self) -> Item:
        """The next one of the caller whose turn it is. Raises StopIteration when nothing waits."""
        caller = next(iter(self._waiting))
        items = self._waiting[caller]
        item = items.popleft()
        if items:
            self._waiting.move_to_end(caller)
        else:
            del self._waiting[caller]
        return item


class Batches(Generic[Item, Outcome]):
    """Belongs to one event loop. A cancelled caller does not affect the others in the batch."""

    def __init__(
        self,
        carry_out: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome | Exception]]],
        *,
        most: int,
        weigh: Callable[[Item], int] = lambda _: 1,
        at_once: int = 1,
    ) -> None:
        """`carry_out` returns an outcome or error for each item; an error that it raises goes to all of them.

        A batch is full once it weighs `most`; `at_once` of them may be in progress.
        """
        self._carry_out = carry_out
        self._most = most
        self._weigh = weigh
        self._at_once = at_once
        self._waiting: Turns[tuple[Item, asyncio.Future[Outcome]]] = Turns()
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def do(self, item: Item, *, caller: str) -> Outcome:
        """The item's outcome, from the next batch in which its caller has a turn."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.put(caller, (item, answer))
        if self._running < self._at_once:
            self._running += 1
            task = asyncio.create_task(self._run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._answer(self._next())
        finally:
            self._running -= 1

    def _next(self) -> list[tuple[Item, asyncio.Future[Outcome]]]:
        batch, weight = [], 0
        while self._waiting and weight < self._most:
            item, answer = self._waiting.take()
            if not answer.done():  # otherwise its caller has disconnected, and its work has not begun
                batch.append((item, answer))
                weight += self._weigh(item)
        return batch

    async def _answer(self, batch: Sequence[tuple[Item, asyncio.Future[Outcome]]]) -> None:
        if not batch:
            return
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await self._carry_out([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 every waiting request must get an outcome, whatever the error
            outcomes = [error] * len(batch)
        for (_, answer), outcome in zip(batch, outcomes, strict=True):
            if answer.done():
                continue
            if isinstance(outcome, Exception):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)
