"""Limits the memory of large requests together: each reserves it before it fetches, decompresses or builds anything.

A request that finds no room waits for a short time and is then answered 503 with Retry-After; it has changed nothing.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Condition
from typing import TypeVar

from lakewarden import board, config
from lakewarden.errors import Unavailable
from lakewarden.fair_shares import Shares, of_server

T = TypeVar("T")

UNCOUNTED = 256 * 1024
"""Bytes: smaller amounts are not counted, because the number of threads limits them."""
PATIENCE_S = 5.0
MOST_WAITING = 4
"""Requests that may wait for room; few, because each blocks a thread while it waits."""
_BUILDERS = 2
_LOOK_S = 0.1


class Budget:
    """Memory in bytes, and places to wait for it; both are divided among callers by `Shares`.

    A request counts as at most `most` bytes, a caller's whole share, so even the largest document can be served.
    """

    def __init__(self, capacity: int, *, percent: int = 100) -> None:
        self.most = capacity * percent // 100
        self._bytes = of_server("working", capacity, percent=percent)
        self._places = Shares(max(1, MOST_WAITING // board.current().processes), percent=percent)
        self._changed = Condition()

    @property
    def used(self) -> int:
        return self._bytes.taken

    def try_take(self, size: int, caller: str = "") -> bool:
        return self._bytes.take(caller, min(size, self.most))

    def take(self, size: int, caller: str = "") -> None:
        """Take `size` bytes, waiting if necessary; raises Unavailable after a time-out or if too many are waiting."""
        with self._changed:
            if self.try_take(size, caller):
                return
            if self._places.take(caller):
                try:
                    if self._wait_for(size, caller):
                        return
                finally:
                    self._places.give_back(caller)
        raise Unavailable("Too many large requests at once; nothing was changed. Try again shortly")

    def _wait_for(self, size: int, caller: str) -> bool:
        """Wait until there is room; returns False after the time-out.

        It polls, because other processes cannot notify.
        """
        deadline = time.monotonic() + PATIENCE_S
        while (left := deadline - time.monotonic()) > 0:
            self._changed.wait(min(left, _LOOK_S))
            if self.try_take(size, caller):
                return True
        return False

    def give_back(self, size: int, caller: str = "") -> None:
        with self._changed:
            self._bytes.give_back(caller, min(size, self.most))
            self._changed.notify_all()


@cache
def working() -> Budget:
    """The memory for large documents, lists and bodies."""
    settings = config.current().server
    return Budget(settings.max_working_bytes, percent=settings.caller_share_percent)


_held: ContextVar[tuple[str, dict[object, int]] | None] = ContextVar("held", default=None)


@contextmanager
def held_by_request(caller: str) -> Iterator[None]:
    """Surrounds a request in its thread: what `hold` takes counts for its caller and is released at the end."""
    mine: dict[object, int] = {}
    token = _held.set((caller, mine))
    try:
        yield
    finally:
        _held.reset(token)
        if mine:
            working().give_back(sum(mine.values()), caller)


def hold(what: object, size: int) -> None:
    """Reserve `size` bytes for this thread's request until it ends; for the same `what` only the largest size counts.

    Raises Unavailable if there is no room. Outside of requests (in tasks and commands) nothing is counted.
    """
    held = _held.get()
    if held is None or size < UNCOUNTED:
        return
    caller, mine = held
    more = min(size - mine.get(what, 0), working().most - sum(mine.values()))
    if more > 0:
        working().take(more, caller)
        mine[what] = mine.get(what, 0) + more


async def off_loop(build: Callable[[], T], *, size: int, caller: str) -> T:
    """Run `build`, which needs `size` bytes, in one of a few threads; raises Unavailable if there is no room now."""
    if not working().try_take(size, caller):
        raise Unavailable("Too many large requests at once. Try again shortly")
    try:
        return await asyncio.get_running_loop().run_in_executor(_builders(), build)
    finally:
        working().give_back(size, caller)


@cache
def _builders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_BUILDERS, thread_name_prefix="build")
