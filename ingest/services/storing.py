"""Stores what was received: in the log, or in the fallback file while the log does not answer."""

from pathlib import Path
from uuid import UUID

from ingest.services.appender import Appender, Item, Sent
from ingest.services.fallback.keeper import Fallback
from ingest.services.log import Outcome
from ingest.services.statements import LogUnavailable
from lakewarden import config
from lakewarden.context import CallerKey


def _configured() -> Fallback | None:
    settings = config.current().ingest
    if settings.fallback_folder is None:
        return None
    return Fallback(Path(settings.fallback_folder), most=settings.fallback_bytes)


FALLBACK = _configured()
"""Of this process; None: batches are refused while the log does not answer."""


async def recover() -> None:
    """Replay what earlier processes of this machine have kept. To be called when the process starts."""
    if FALLBACK is not None:
        await FALLBACK.recover()


def waiting(warehouse_id: UUID) -> int:
    """What this process has received and is not in the log yet."""
    return 0 if FALLBACK is None else FALLBACK.waiting(warehouse_id)


async def store(
    appender: Appender[Sent], warehouse_id: UUID, caller: CallerKey, item: Item[Sent], *, expected: int | None = None
) -> Outcome:
    """Durable when it returns; `expected` is the number that the log expected of the source when it was last asked.

    Raises LogUnavailable; FallbackFailed if there is a fallback file, and it cannot be used either.
    """
    if FALLBACK is None:
        return await appender.append(warehouse_id, item)
    if await FALLBACK.passes(warehouse_id, item.sent):
        try:
            return await appender.append(warehouse_id, item)
        except LogUnavailable as error:
            FALLBACK.note_outage(error)
    return await FALLBACK.keep(warehouse_id, caller, item, expected=expected)
