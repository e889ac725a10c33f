"""What the gateway says of a warehouse's log: state, buffer, sources, capabilities."""

import time
from typing import Any, Final
from uuid import UUID

from cachetools import LRUCache

from ingest.services import flushes, leases, log, storing
from lakewarden import config

_MS: Final = 1000
_FILLING_SINCE: Final[LRUCache[UUID, tuple[int, float]]] = LRUCache(10_000)


def capabilities() -> dict[str, Any]:
    limits = config.current().ingest
    return {
        "binaryProtocol": False,
        "compression": False,
        "batching": True,
        "maxBatchSize": limits.max_batch_events,
        "maxMessageSize": limits.max_message_bytes,
        "maxEventSize": limits.max_event_bytes,
        "maxUnacknowledgedBatches": limits.window,
    }


async def status(warehouse_id: UUID) -> dict[str, Any]:
    """The members of the status message. Raises LogUnavailable."""
    head = await log.head(warehouse_id)
    pipeline = await flushes.pipeline(warehouse_id)
    last_flush = None if head is None else milliseconds(head.flushed_at)
    oldest = None if head is None else milliseconds(head.oldest_at)
    members: dict[str, Any] = {
        "state": "recovering" if storing.waiting(warehouse_id) else state(head, pipeline),
        "buffer": buffer(head),
        "connectedSources": await leases.count(warehouse_id),
    }
    if last_flush is not None:
        members["lastFlushTime"] = last_flush
    if oldest is not None:
        members["nextFlushTime"] = oldest + int(config.current().ingest.flush_age_s * _MS)
    return members


def state(head: log.Head | None, pipeline: flushes.Pipeline | None) -> str:
    """What the pipeline says while it runs and does something; else whether there is something to do."""
    if pipeline is not None and pipeline.is_running and pipeline.state != "idle":
        return pipeline.state
    return "receiving" if head is not None and head.buffered_batches else "idle"


def buffer(head: log.Head | None) -> dict[str, Any]:
    if head is None:
        return {"batchCount": 0, "eventCount": 0, "totalSizeBytes": 0, "utilization": 0.0}
    times = {"oldestBatchTime": milliseconds(head.oldest_at), "newestBatchTime": milliseconds(head.newest_at)}
    return {
        "batchCount": head.buffered_batches,
        "eventCount": head.buffered_events,
        "totalSizeBytes": head.buffered_bytes,
        "utilization": round(utilization(head), 4),
        **({name: each for name, each in times.items() if each is not None} if head.buffered_batches else {}),
    }


def utilization(head: log.Head) -> float:
    return head.buffered_bytes / config.current().ingest.buffer_bytes


def milliseconds(at: Any) -> int | None:  # noqa: ANN401 a moment, or None
    return None if at is None else int(at.timestamp() * _MS)


def until_flush_ms(warehouse_id: UUID, buffered_bytes: int) -> int:
    """An estimate without a query: the age of what waits is counted from when this process saw it become less."""
    now = time.monotonic()
    before, since = _FILLING_SINCE.get(warehouse_id, (0, now))
    if buffered_bytes < before:
        since = now
    _FILLING_SINCE[warehouse_id] = (buffered_bytes, since)
    return max(0, int((config.current().ingest.flush_age_s - (now - since)) * _MS))
