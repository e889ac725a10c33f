"""Stops the swaps of commits, so that a test decides what waits for what."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from catalog.services.commit_writer import swaps, writer
from catalog.services.creation_writer import additions
from tests.servers import asgi_client

SOON_S = 30


class Gate:
    """Swaps stop after they begin, until the test lets each of them continue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self._allowed = asyncio.Semaphore(0)
        self._carry_out = swaps.SWAPS._carry_out
        monkeypatch.setattr(swaps.SWAPS, "_carry_out", self._pass)

    async def _pass(self, chains: Any) -> Any:
        self.begun += 1
        await self._allowed.acquire()
        return await self._carry_out(chains)

    def let_through(self, count: int) -> None:
        for _ in range(count):
            asgi_client._loop().call_soon_threadsafe(self._allowed.release)


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def waiting() -> int:
    """The number of commits that wait for the one in progress on their table."""
    lanes = list(writer.WRITER._lanes.values())
    return sum(len(items) for lane in lanes for items in lane._waiting._waiting.values())


def waiting_creations() -> int:
    return sum(len(items) for items in additions.TABULARS._waiting._waiting.values())
