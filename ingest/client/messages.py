"""The messages of the gateway's socket: those that it sends, as types; those that it takes, as JSON.

Members that are not known are ignored: a newer gateway may send more.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ingest.client.errors import ConnectionLost

PROTOCOL_VERSION = 1


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """What one message may hold: `max_batch_size` events, `max_message_size` bytes; and the bytes of one event."""

    max_batch_size: int = 1000
    max_message_size: int = 4 * 1024 * 1024
    max_event_size: int = 1024 * 1024


class AckDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    events_processed: int = 0
    buffer_utilization: float = 0.0
    time_until_flush: float | None = None


class Ack(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`status` is `ok`, `buffered`, `persisted`, `duplicate` or `fallback`: in each case the batch is durable."""

    sequence_number: int
    status: str
    details: AckDetails | None = None


class Nack(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Nothing of the batch was stored; without a number, it is about another message."""

    sequence_number: int | None = None
    reason: str
    error_message: str = ""
    should_retry: bool = False
    retry_delay_ms: float = 0.0


class SourceState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    last_acked_sequence: int | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to `connect`, and what the gateway sends from time to time."""

    state: str = ""
    last_acked_sequence: int | None = None
    source_states: tuple[SourceState, ...] = ()
    capabilities: Limits | None = None

    def acked(self, source: str) -> int | None:
        """The last sequence number of this source that is durable, if the message says so."""
        if self.last_acked_sequence is not None:
            return self.last_acked_sequence
        return next((each.last_acked_sequence for each in self.source_states if each.id == source), None)


class Pong(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    server_time: float = 0.0


class FlushResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a flush wrote; `paths` are the data files of the new snapshots."""

    success: bool
    batches_flushed: int = 0
    events_flushed: int = 0
    bytes_written: int = 0
    paths: tuple[str, ...] = ()
    duration_ms: float = 0.0
    used_fallback: bool = False
    error: str | None = None


class FlushResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    correlation_id: str | None = None
    result: FlushResult


class _Head(msgspec.Struct):
    type: str


Received = Ack | Nack | Status | Pong | FlushResponse
_KINDS: Mapping[str, type[Received]] = {
    "ack": Ack,
    "nack": Nack,
    "status": Status,
    "pong": Pong,
    "flush_response": FlushResponse,
}


def decode(content: str | bytes) -> Received | None:
    """A message of the gateway; None for kinds that this client does not know. Raises `ConnectionLost`."""
    try:
        kind = _KINDS.get(msgspec.json.decode(content, type=_Head).type)
        return None if kind is None else msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConnectionLost(f"the gateway sent a message that is not of its protocol ({error})") from error


def connect(*, source: str, shard: str | None, last_acked: int, limits: Limits) -> bytes:
    capabilities = {
        "binaryProtocol": False,
        "compression": False,
        "batching": True,
        "maxBatchSize": limits.max_batch_size,
        "maxMessageSize": limits.max_message_size,
    }
    content = {"lastAckSequence": last_acked, "protocolVersion": PROTOCOL_VERSION, "capabilities": capabilities}
    return _encode("connect", source, shard, content)


def batch(
    events: Sequence[bytes],
    *,
    source: str,
    shard: str | None,
    sequence_number: int,
    span: tuple[int, int],
    retries: int,
) -> bytes:
    """`events` are sent byte for byte; `span`: the sequences of the first and the last event."""
    size = sum(map(len, events))
    content = {
        "correlationId": f"{source}-{sequence_number}",
        "sequenceNumber": sequence_number,
        "firstEventSequence": span[0],
        "lastEventSequence": span[1],
        "sizeBytes": size,
        "isRetry": retries > 0,
        "retryCount": retries,
        "events": msgspec.Raw(b"[" + b",".join(events) + b"]"),
    }
    return _encode("cdc_batch", source, shard, content)


def heartbeat(*, source: str, last_acked: int, pending: int) -> bytes:
    return _encode("heartbeat", source, None, {"lastAckSequence": last_acked, "pendingEvents": pending})


def flush_request(*, source: str, correlation_id: str) -> bytes:
    return _encode("flush_request", source, None, {"correlationId": correlation_id, "reason": "manual"})


def _encode(kind: str, source: str, shard: str | None, content: Mapping[str, Any]) -> bytes:
    head: dict[str, Any] = {"type": kind, "timestamp": time.time_ns() // 1_000_000, "sourceDoId": source}
    if shard is not None:
        head["sourceShardName"] = shard
    return msgspec.json.encode(head | dict(content))
