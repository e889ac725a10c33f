"""Requests of one moment for the same large answer share one building of it, and the memory that it takes."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedBuilds(Generic[T]):
    """What is being built, by what it is and who asked: what is built for one caller uses up nobody else's share.

    Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[T]] = {}

    async def share(self, key: Hashable, build: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result, or the error, of the build that is running for this key; one is started if there is none."""
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.create_task(build())
            running.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(running)  # a request that is given up does not take it from the others
