"""Asks storages whether files are there, for handlers on the event loop: in a thread, one turn for all that wait.

A turn begins after all requests that it answers arrived. A file that was there is not looked for again for a moment:
the hand-over to a thread costs as much as all the rest of a warm load. A storage that does not answer delays nobody for
long: a file that cannot be checked does not count as missing.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

PATIENCE_S = 0.25
TRUST_S = 0.5  # for which a file that was there is taken to be there still
CAPACITY = 10_000

Check = Callable[[], bool]
Asked = tuple[Check, asyncio.Future[bool]]
Turn = tuple[list[Asked], asyncio.AbstractEventLoop]


class FileChecks:
    """Belongs to one event loop."""

    def __init__(self, *, patience_s: float = PATIENCE_S, trust_s: float = TRUST_S) -> None:
        self._patience_s = patience_s
        self._trust_s = trust_s
        self._seen: OrderedDict[Check, float] = OrderedDict()
        self._waiting: list[Asked] = []
        self._is_busy = False
        self._is_stuck = False
        self._turns: SimpleQueue[Turn] = SimpleQueue()
        self._thread: Thread | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def is_missing(self, check: Check) -> bool:
        """The result of `check`, or its last result; False if it takes too long, and while an earlier call hangs.

        `check` stands for one file: the same object is asked for it again.
        """
        if self.is_trusted(check):
            return False
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((check, answer))
        if not self._is_busy:
            self._begin()
        return await answer

    def is_trusted(self, check: Check) -> bool:
        """Whether the file does not count as missing, without looking."""
        return self._is_stuck or asyncio.get_running_loop().time() < self._seen.get(check, 0)

    def _begin(self) -> None:
        if self._thread is None:
            # a daemon: one that hangs must not keep the process from ending
            self._thread = Thread(target=self._work, name="file-checks", daemon=True)
            self._thread.start()
        turn, self._waiting = self._waiting, []
        self._is_busy = True
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._patience_s, self._give_up, turn)
        self._turns.put((turn, loop))

    def _give_up(self, turn: list[Asked]) -> None:
        self._is_stuck = True
        waiting, self._waiting = self._waiting, []
        for _, answer in (*turn, *waiting):
            if not answer.done():
                answer.set_result(False)

    def _end(self, turn: list[Asked], found: list[bool]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_busy = self._is_stuck = False
        until = asyncio.get_running_loop().time() + self._trust_s
        for (check, answer), is_missing in zip(turn, found, strict=True):
            if not is_missing:
                self._seen[check] = until
                self._seen.move_to_end(check)
            if not answer.done():
                answer.set_result(is_missing)
        while len(self._seen) > CAPACITY:
            self._seen.popitem(last=False)
        if self._waiting:
            self._begin()

    def _work(self) -> None:
        while True:
            turn, loop = self._turns.get()
            found = [check() for check, _ in turn]
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._end, turn, found)


FILES = FileChecks()
