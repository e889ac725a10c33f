"""A thread pool with a bounded queue; a single caller cannot take all threads or all places in the queue."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lakewarden.errors import Unavailable
from lakewarden.fair_shares import Shares

T = TypeVar("T")


class FairThreads:
    """To be used on the event loop only. Waiting callers take turns, no matter how many requests each has."""

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        queue: int,
        percent: int,
        patience_s: float,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        """`percent` limits one caller's share of the threads and of the queue; each thread calls `prepare` first."""
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=prepare)
        self._running = Shares(threads, percent=percent)
        self._places = Shares(queue, percent=percent)
        self._patience_s = patience_s
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def running(self) -> int:
        """Threads that work."""
        return self._running.taken

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return self._places.taken

    async def run(self, caller: str, work: Callable[..., T], *arguments: object) -> T:
        """Run `work(*arguments)` in a thread and return its result.

        Raises Unavailable, before the work begins, if the queue is full or no thread becomes free in time.
        """
        if not self._running.take(caller):
            await self._turn(caller)
        try:
            return await asyncio.get_running_loop().run_in_executor(self.executor, work, *arguments)
        finally:
            self._end(caller)

    def begin(self, caller: str, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """As `run`, without a task where a thread is free; the work ends whoever still waits for it."""
        if not self._running.take(caller):
            return asyncio.create_task(self.run(caller, work, *arguments))
        try:
            result = asyncio.get_running_loop().run_in_executor(self.executor, work, *arguments)
        except BaseException:
            self._running.give_back(caller)
            raise
        result.add_done_callback(lambda _: self._end(caller))
        return result

    def _end(self, caller: str) -> None:
        self._running.give_back(caller)
        self._call_next()

    async def _turn(self, caller: str) -> None:
        """Wait until a thread is reserved for the caller."""
        if not self._places.take(caller):
            raise self._refusal(caller)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await asyncio.wait({turn}, timeout=self._patience_s)
        finally:
            self._places.give_back(caller)
            if not turn.done():
                self._withdraw(caller, turn)
        if not turn.done():
            raise Unavailable(
                f"The request was not started: it waited for {self._patience_s:g} s and no thread became free"
            )

    def _withdraw(self, caller: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[caller]
        turns.remove(turn)
        if not turns:
            del self._waiting[caller]

    def _call_next(self) -> None:
        while self._waiting and self._call_one():
            pass

    def _call_one(self) -> bool:
        for caller, turns in self._waiting.items():
            if self._running.take(caller):
                turns.popleft().set_result(None)
                if turns:
                    self._waiting.move_to_end(caller)
                else:
                    del self._waiting[caller]
                return True
        return False

    def _refusal(self, caller: str) -> Unavailable:
        own = self._running.held_by(caller) + self._places.held_by(caller)
        return too_many(running=self._running.taken, waiting=self._places.taken, own=own)


def too_many(*, running: int, waiting: int, own: int) -> Unavailable:
    """The refusal of a request for which there is no room; `own`: how many of the others are its caller's."""
    return Unavailable(
        "The request was not started: the server has as many requests as it can process "
        f"({running} in progress, {waiting} waiting; {own} of them are yours)"
    )
