"""Checks the events of a batch without looking into their rows, which stay as their sender wrote them."""

from typing import Annotated, Any, Final, Literal

import msgspec

from ingest.protocol import NackReason, Number, Refused
from lakewarden.config import IngestConfig

TableName = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
_NAMED_WRONG: Final = 10
"""Wrong events that a refusal names."""


class Row(msgspec.Struct):
    """Any JSON object: its members are skipped, but must be valid JSON."""


class Event(msgspec.Struct, rename="camel"):
    sequence: Number
    timestamp: int | float
    operation: Literal["INSERT", "UPDATE", "DELETE"]
    table: TableName
    row_id: Annotated[str, msgspec.Meta(min_length=1)]
    before: Row | None = None
    after: Row | None = None
    metadata: Row | None = None


_EVENTS: Final = msgspec.json.Decoder(list[Event])
_EVENT: Final = msgspec.json.Decoder(Event)
_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw])


class Events(msgspec.Struct, frozen=True):
    """What is known of a batch: `content` is the JSON array as it came, `tables` the names in it, each once."""

    content: bytes
    count: int
    tables: tuple[str, ...]


def parse(raw: msgspec.Raw, limits: IngestConfig) -> Events:
    """Raises Refused, which names each wrong event by its index, and the field (the first ten)."""
    try:
        found = _EVENTS.decode(raw)
    except RecursionError:
        raise _invalid("The events are nested too deeply") from None
    except msgspec.DecodeError as error:
        raise _invalid(_each_fault(raw, limits) or f"The events are not valid: {error}") from None
    if not found:
        raise _invalid("No events provided: `events` must have at least one")
    if len(found) > limits.max_batch_events:
        raise _invalid(f"The batch has {len(found)} events, at most {limits.max_batch_events} are allowed")
    content = bytes(raw)
    if len(content) > limits.max_event_bytes:
        _check_sizes(raw, limits)
    tables = tuple({event.table: None for event in found})
    if len(tables) > limits.max_batch_tables:
        raise _invalid(f"The events name {len(tables)} tables, at most {limits.max_batch_tables} are allowed a batch")
    return Events(content, len(found), tables)


def _each_fault(raw: msgspec.Raw, limits: IngestConfig) -> str:
    """What is wrong with which event; empty if it is not an array of valid JSON, or too long to look at each."""
    try:
        each = _RAW.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return ""
    faults = []
    for index, event in enumerate(each[: limits.max_batch_events]):
        fault = _fault(event)
        if fault is not None:
            faults.append(f"events[{index}]{fault}")
            if len(faults) == _NAMED_WRONG:
                break
    return "; ".join(faults)


def _fault(event: msgspec.Raw) -> str | None:
    try:
        _EVENT.decode(event)
    except RecursionError:
        return ": it is nested too deeply"
    except msgspec.ValidationError as error:
        # the driver of the words is `<what> - at `$.field``
        text, _, place = str(error).partition(" - at `$")
        return f"{place.rstrip('`')}: {text}"
    return None


def _check_sizes(raw: msgspec.Raw, limits: IngestConfig) -> None:
    sizes: list[Any] = [len(memoryview(event)) for event in _RAW.decode(raw)]
    faults = [
        f"events[{index}]: it has {size} bytes, at most {limits.max_event_bytes} are allowed"
        for index, size in enumerate(sizes)
        if size > limits.max_event_bytes
    ]
    if faults:
        raise _invalid("; ".join(faults[:_NAMED_WRONG]))


def _invalid(message: str) -> Refused:
    return Refused(NackReason.INVALID_FORMAT, message)
