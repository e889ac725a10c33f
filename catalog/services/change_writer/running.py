"""Lets a change come to its end whose caller has disconnected: whether it happens must not depend on that."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_running: set[asyncio.Task[Any]] = set()


async def to_the_end(change: Coroutine[Any, Any, T]) -> T:
    task = asyncio.create_task(change)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return await asyncio.shield(task)
