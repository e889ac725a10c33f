"""Fallback files of a process that has just started, which tests end and wait for."""

from pathlib import Path

import pytest

from ingest.services import storing
from ingest.services.fallback.keeper import Fallback
from tests.integration.catalog.observed import eventually
from tests.integration.ingest.batches import run


def started(folder: Path, monkeypatch: pytest.MonkeyPatch, *, most: int = 1 << 20) -> Fallback:
    """That of a process that has just started. It is made on the loop that uses it."""

    async def made() -> Fallback:
        found = Fallback(folder / "fallback", most=most)
        await found.recover()
        return found

    found = run(made())
    monkeypatch.setattr(storing, "FALLBACK", found)
    return found


def drained(fallback: Fallback) -> None:
    eventually(lambda: fallback.waiting_bytes == 0 and not fallback._chains)


async def cancelled(fallback: Fallback) -> None:
    for task in fallback._tasks.values():
        task.cancel()
