"""The messages of the socket, as the paper of the wire format has them; unknown members are ignored."""

import random
import time
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A 64-bit integer: never a float, in which large ones lose digits."""
SourceId = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
Label = Annotated[str, msgspec.Meta(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]

PROTOCOL_VERSION: Final = 1
_STEPS: Final = 6  # doublings of the shortest delay


class Connect(msgspec.Struct, tag="connect", rename="camel"):
    source_do_id: SourceId
    source_shard_name: Label | None = None
    last_ack_sequence: Number | None = None
    protocol_version: int = PROTOCOL_VERSION


class CdcBatch(msgspec.Struct, tag="cdc_batch", rename="camel"):
    """`events` is left as it came."""

    sequence_number: Number
    events: msgspec.Raw
    source_do_id: SourceId | None = None
    source_shard_name: Label | None = None
    correlation_id: Label | None = None


class Heartbeat(msgspec.Struct, tag="heartbeat", rename="camel"):
    timestamp: float | None = None


class FlushRequest(msgspec.Struct, tag="flush_request", rename="camel"):
    correlation_id: Label | None = None


ClientMessage = Connect | CdcBatch | Heartbeat | FlushRequest
DECODER: Final = msgspec.json.Decoder(ClientMessage)


class _Marks(msgspec.Struct, rename="camel"):
    """What a refusal repeats of a message that is not valid."""

    sequence_number: Any = None
    correlation_id: Any = None


_MARKS: Final = msgspec.json.Decoder(_Marks)


class AckStatus(StrEnum):
    OK = "ok"
    BUFFERED = "buffered"
    PERSISTED = "persisted"
    DUPLICATE = "duplicate"
    FALLBACK = "fallback"


class NackReason(StrEnum):
    BUFFER_FULL = "buffer_full"
    RATE_LIMITED = "rate_limited"
    INVALID_SEQUENCE = "invalid_sequence"
    INVALID_FORMAT = "invalid_format"
    INTERNAL_ERROR = "internal_error"
    SHUTTING_DOWN = "shutting_down"

    @property
    def should_retry(self) -> bool:
        return self not in {NackReason.INVALID_SEQUENCE, NackReason.INVALID_FORMAT}


class Refused(Exception):
    """A batch of which nothing was stored; `failures` is how many of the connection were refused in a row before."""

    def __init__(self, reason: NackReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def now_ms() -> int:
    return int(time.time() * 1000)


def ack(batch: CdcBatch, status: AckStatus, *, events: int, utilization: float, until_flush_ms: int) -> bytes:
    return _message(
        "ack",
        batch.correlation_id,
        sequenceNumber=batch.sequence_number,
        status=status.value,
        details={
            "eventsProcessed": events,
            "bufferUtilization": round(utilization, 4),
            "timeUntilFlush": until_flush_ms,
        },
    )


def nack(
    refused: Refused, *, sequence_number: int | None, correlation_id: str | None, failures: int, shortest_ms: int
) -> bytes:
    """`failures` in a row make the delay grow; without a retry there is none."""
    retry = {"retryDelayMs": delay_ms(failures, shortest_ms)} if refused.reason.should_retry else {}
    known = {} if sequence_number is None else {"sequenceNumber": sequence_number}
    return _message(
        "nack",
        correlation_id,
        **known,
        reason=refused.reason.value,
        errorMessage=refused.message,
        shouldRetry=refused.reason.should_retry,
        **retry,
    )


def delay_ms(failures: int, shortest_ms: int) -> int:
    """Twice as long after each failure in a row, and at least half of that by chance: clients do not come together."""
    longest = shortest_ms * 2 ** min(failures, _STEPS)
    return random.randint(max(shortest_ms, longest // 2), longest)  # noqa: S311 no secret


def pong() -> bytes:
    return _message("pong", None, serverTime=now_ms())


def status(members: dict[str, Any]) -> bytes:
    return _message("status", None, **members)


def flush_response(correlation_id: str | None, result: dict[str, Any]) -> bytes:
    return _message("flush_response", correlation_id, result=result)


def marks(text: str) -> tuple[int | None, str | None]:
    """Sequence number and correlation id of a message that is not valid, as far as they can be read."""
    try:
        found = _MARKS.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None, None
    number, name = found.sequence_number, found.correlation_id
    is_number = isinstance(number, int) and not isinstance(number, bool)
    return number if is_number else None, name[:255] if isinstance(name, str) else None


def _message(kind: str, correlation_id: str | None, **members: Any) -> bytes:  # noqa: ANN401 JSON
    named = {} if correlation_id is None else {"correlationId": correlation_id}
    return msgspec.json.encode({"type": kind, "timestamp": now_ms(), **named, **members})
