"""Writes and removes metadata files for the event loop, in a few threads that one hanging storage cannot use up."""

import asyncio
from collections.abc import Sequence
from functools import cache

from catalog.services import metadata_files
from lakewarden import config
from lakewarden.errors import Unavailable
from lakewarden.hot.fair_threads import FairThreads
from tenants.models import Warehouse

_PATIENCE_S = 10.0
_SHARE_PERCENT = 50
"""One warehouse's share of the threads: with the default settings as many as `storage.max_calls_at_once`."""

_in_background: set[asyncio.Future[None]] = set()


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
    threads, place = _threads(), warehouse.location
    writing = [threads.begin(place, metadata_files.store, warehouse, *file) for file in files]
    await asyncio.wait(writing, timeout=patience_s)
    return [
        _error(each) if each.done() else _give_up(warehouse, file, each, after_s=patience_s)
        for (file, _), each in zip(files, writing, strict=True)
    ]


def _error(written: asyncio.Future[None]) -> Exception | None:
    """It is one commit's alone, whatever it was."""
    error = written.exception()
    if error is not None and not isinstance(error, Exception):
        raise error
    return error


def _give_up(warehouse: Warehouse, file: str, writing: asyncio.Future[None], *, after_s: float) -> Unavailable:
    """The error for a file that is still being written; it is removed as soon as it is there."""

    def remove(written: asyncio.Future[None]) -> None:
        _in_background.discard(written)
        if not written.cancelled() and written.exception() is None:
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
        removing = _threads().begin(warehouse.location, metadata_files.discard, warehouse, files)
        _in_background.add(removing)
        removing.add_done_callback(_forget)


def _forget(removed: asyncio.Future[None]) -> None:
    _in_background.discard(removed)
    if not removed.cancelled() and (error := removed.exception()):
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
