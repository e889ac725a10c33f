"""Bounds what large requests take together: each says how much before it fetches, unpacks or builds it.

A request that finds no room waits a little, and is then answered 503 with Retry-After: nothing of it was applied.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Condition
from typing import TypeVar

from lakewarden import config
from lakewarden.errors import Unavailable

T = TypeVar("T")

UNCOUNTED = 256 * 1024
"""Bytes: what is smaller is bounded by the number of threads."""
PATIENCE_S = 5.0
MOST_WAITING = 4
"""Requests that may wait for room; each keeps a thread from others meanwhile."""
_BUILDERS = 2


class Budget:
    """Bytes that are in use at the same time; who wants more than all of them gets them when nobody else has any."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._used = 0
        self._waiting = 0
        self._changed = Condition()

    @property
    def used(self) -> int:
        return self._used

    def try_take(self, size: int) -> bool:
        with self._changed:
            return self._take(size)

    def take(self, size: int) -> None:
        """Wait for room; raises Unavailable when there is none in time, or too many wait already."""
        with self._changed:
            if self._take(size):
                return
            if self._waiting < MOST_WAITING:
                self._waiting += 1
                try:
                    if self._changed.wait_for(lambda: self._take(size), PATIENCE_S):
                        return
                finally:
                    self._waiting -= 1
        raise Unavailable("Too many large requests at once; nothing was changed. Try again shortly")

    def give_back(self, size: int) -> None:
        with self._changed:
            self._used -= min(size, self._capacity)
            self._changed.notify_all()

    def _take(self, size: int) -> bool:
        size = min(size, self._capacity)
        if self._used + size > self._capacity:
            return False
        self._used += size
        return True


@cache
def working() -> Budget:
    """What requests on large documents, lists and bodies work on."""
    return Budget(config.current().server.max_working_bytes)


_held: ContextVar[dict[object, int] | None] = ContextVar("held", default=None)


@contextmanager
def held_by_request() -> Iterator[None]:
    """Around one request in its thread: what it holds is given back at its end."""
    mine: dict[object, int] = {}
    token = _held.set(mine)
    try:
        yield
    finally:
        _held.reset(token)
        if mine:
            working().give_back(sum(mine.values()))


def hold(what: object, size: int) -> None:
    """Count `size` bytes for the request of this thread until it ends; `what` names them, a second time counts once.

    Raises Unavailable when there is no room. Outside of requests (a task, a command) nothing is counted.
    """
    mine = _held.get()
    if mine is None or size < UNCOUNTED:
        return
    more = size - mine.get(what, 0)
    if more > 0:
        more = min(more, config.current().server.max_working_bytes - sum(mine.values()))
        working().take(more)
        mine[what] = mine.get(what, 0) + more


async def off_loop(build: Callable[[], T], *, size: int) -> T:
    """Call `build`, which takes `size` bytes, in one of few threads; Unavailable when there is no room now."""
    if not working().try_take(size):
        raise Unavailable("Too many large requests at once. Try again shortly")
    try:
        return await asyncio.get_running_loop().run_in_executor(_builders(), build)
    finally:
        working().give_back(size)


@cache
def _builders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_BUILDERS, thread_name_prefix="build")
