"""Computations of milliseconds on the event loop: one at a time, in turns of their callers, with pauses for others."""

import asyncio
from collections.abc import Callable
from time import thread_time
from typing import Final, TypeVar

from lakewarden.hot.batches import Turns

T = TypeVar("T")

AT_A_TIME_S: Final = 0.004
"""Seconds of the processor that may pass before the loop looks after everything else."""


class Pace:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: Turns[asyncio.Future[None]] = Turns()
        self._is_busy = False
        self._spent_s = 0.0

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """The result of `work`, which runs when it is its turn: many that were ready at once would block the loop
        together.
        """
        if self._is_busy:
            await self._turn(caller)
        self._is_busy = True
        began = thread_time()
        try:
            result = work()
            self._spent_s += thread_time() - began
            if self._spent_s >= AT_A_TIME_S:
                self._spent_s = 0.0
                await asyncio.sleep(0)
            return result
        finally:
            self._pass_on()

    async def _turn(self, caller: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(caller, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            turn = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._is_busy = False


PACE: Final = Pace()
