"""Bounds what large requests take together: each says how much before it fetches, unpacks or builds it.

A request that finds no room waits a little, and is then answered 503 with Retry-After: nothing of it was applied.
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
from lakewarden.shares import Shares, of_server

T = TypeVar("T")

UNCOUNTED = 256 * 1024
"""Bytes: what is smaller is bounded by the number of threads."""
PATIENCE_S = 5.0
MOST_WAITING = 4
"""Requests that may wait for room; each keeps a thread from others meanwhile."""
_BUILDERS = 2
_LOOK_S = 0.1


class Budget:
    """Bytes that are in use at the same time, and places to wait for them; both divided among callers by `Shares`.

    A request counts as `most` bytes at most, a caller's whole share: the largest document is served, and leaves room.
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
        """Wait for room; raises Unavailable when there is none in time, or too many wait already."""
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
        """Whether there was room in time; what other processes give back tells nobody here."""
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
    """What requests on large documents, lists and bodies work on."""
    settings = config.current().server
    return Budget(settings.max_working_bytes, percent=settings.caller_share_percent)


_held: ContextVar[tuple[str, dict[object, int]] | None] = ContextVar("held", default=None)


@contextmanager
def held_by_request(caller: str) -> Iterator[None]:
    """Around one request in its thread: what it holds is its caller's, and is given back at its end."""
    mine: dict[object, int] = {}
    token = _held.set((caller, mine))
    try:
        yield
    finally:
        _held.reset(token)
        if mine:
            working().give_back(sum(mine.values()), caller)


def hold(what: object, size: int) -> None:
    """Count `size` bytes for the request of this thread until it ends; `what` names them, a second time counts once.

    Raises Unavailable when there is no room. Outside of requests (a task, a command) nothing is counted.
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
    """Call `build`, which takes `size` bytes of the caller's, in one of few threads; Unavailable when there is no room
    now.
    """
    if not working().try_take(size, caller):
        raise Unavailable("Too many large requests at once. Try again shortly")
    try:
        return await asyncio.get_running_loop().run_in_executor(_builders(), build)
    finally:
        working().give_back(size, caller)


@cache
def _builders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_BUILDERS, thread_name_prefix="build")
