"""Writes and removes metadata files for the event loop, in a few threads that one hanging storage cannot use up."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from catalog.services import metadata_files
from lakewarden import config
from lakewarden.errors import Unavailable
from lakewarden.hot.fair_threads import FairThreads
from tenants.models import Warehouse

_PATIENCE_S = 10.0
_SHARE_PERCENT = 50
"""One warehouse's share of the threads: with the default settings as many as `storage.max_calls_at_once`."""

_in_background: set[asyncio.Task[Any]] = set()


class NotWritten(Unavailable):
    """The storage does not respond: another attempt would wait as long."""


async def store(warehouse: Warehouse, files: Sequence[tuple[str, bytes]]) -> list[Exception | None]:
    """Write new files, by location and content; returns the error of each, or None. See `metadata_files.store`.

    Each has a thread of its own: sixteen files that one thread flushes take ten times as long as with eight threads,
    because the file system flushes together what waits together. A storage that hangs keeps its threads, but no commit.
    """
    if not files:
        return []
    patience_s = config.current().storage.write_timeout_s
    writing = [asyncio.create_task(_store(warehouse, *file)) for file in files]
    await asyncio.wait(writing, timeout=patience_s)
    return [
        task.result() if task.done() else _give_up(warehouse, file, task, after_s=patience_s)
        for (file, _), task in zip(files, writing, strict=True)
    ]


def _give_up(
    warehouse: Warehouse, file: str, writing: asyncio.Task[Exception | None], *, after_s: float
) -> Unavailable:
    """The error for a file that is still being written; it is removed as soon as it is there."""

    def remove(written: asyncio.Task[Exception | None]) -> None:
        _in_background.discard(written)
        if not written.cancelled() and written.result() is None:
            discard(warehouse, [file])

    _in_background.add(writing)
    writing.add_done_callback(remove)
    return NotWritten(
        "The metadata could not be written, nothing was changed: the warehouse's storage did not respond within "
        f"{after_s:g} s (storage.write_timeout_s)",
        retry_after_s=5,
    )


def discard(warehouse: Warehouse, files: Sequence[str]) -> None:
    """Remove files that nothing points to, without waiting for it. See `metadata_files.discard`."""
    if files:
        task = asyncio.create_task(_run(warehouse, lambda: metadata_files.discard(warehouse, files)))
        _in_background.add(task)
        task.add_done_callback(_forget)


async def _store(warehouse: Warehouse, file: str, content: bytes) -> Exception | None:
    try:
        await _run(warehouse, lambda: metadata_files.store(warehouse, file, content))
    except Exception as error:  # noqa: BLE001 it is one commit's alone, whatever it was
        return error
    return None


async def _run(warehouse: Warehouse, work: Callable[[], None]) -> None:
    await _threads().run(warehouse.location, work)


def _forget(task: asyncio.Task[None]) -> None:
    _in_background.discard(task)
    if not task.cancelled() and (error := task.exception()):
        metadata_files.logger.warning("Metadata files that are not used were not removed: %s", error)


@cache
def _threads() -> FairThreads:
    settings = config.current()
    return FairThreads(
        "metadata-files",
        threads=settings.storage.commit_threads,
        queue=settings.server.queue,
        percent=_SHARE_PERCENT,
        patience_s=_PATIENCE_S,
    )
