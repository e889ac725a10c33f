"""Cuts events into batches that fit the gateway's limits."""

from collections.abc import Iterator
from dataclasses import dataclass

from ingest.client.errors import WrongLine
from ingest.client.files.formats import Event, Reader
from ingest.client.files.lines import Line, Place
from ingest.client.messages import Limits

ENVELOPE = 4096
"""Bytes of a message that are kept free for what stands around the events."""


@dataclass(frozen=True, slots=True)
class Batch:
    """`end`: the place in the input behind the last line that it covers, lines without an event included."""

    events: tuple[Event, ...]
    end: Place

    @property
    def contents(self) -> list[bytes]:
        return [each.content for each in self.events]

    @property
    def span(self) -> tuple[int, int]:
        return self.events[0].sequence, self.events[-1].sequence

    def line_of(self, index: int) -> int | None:
        return self.events[index].line.number if 0 <= index < len(self.events) else None


def events(lines: Iterator[Line | None], read: Reader, *, after: int = -1) -> Iterator[Event | Place | None]:
    """What each line means: an event, or its end if it holds none; None where the input pauses.

    Raises `WrongLine`, also for a sequence that does not grow (`after`: the last one that was sent before).
    """
    for line in lines:
        if line is None:
            yield None
            continue
        event = read(line)
        if event is None:
            yield line.place
            continue
        if event.sequence <= after:
            raise WrongLine(
                line.number, f"sequence is {event.sequence}, but that of the event before it is {after}: it must grow."
            )
        after = event.sequence
        yield event


def cut(found: Iterator[Event | Place | None], limits: Limits) -> Iterator[Batch | None]:
    """Batches in order; None where the input pauses and nothing waits. Raises `WrongLine` for an event too large."""
    room = limits.max_message_size - ENVELOPE
    waiting: list[Event] = []
    size, end = 0, Place()
    try:
        for item in found:
            if isinstance(item, Place):
                end = item
                continue
            if item is None:
                yield Batch(tuple(waiting), end) if waiting else None
                waiting, size = [], 0
                continue
            _require_fits(item, min(room, limits.max_event_size))
            if waiting and (size + len(item.content) + 1 > room or len(waiting) >= limits.max_batch_size):
                yield Batch(tuple(waiting), end)
                waiting, size = [], 0
            waiting.append(item)
            size += len(item.content) + 1
            end = item.line.place
    except WrongLine:
        if waiting:  # what stands before the wrong line is sent
            yield Batch(tuple(waiting), end)
        raise
    if waiting:
        yield Batch(tuple(waiting), end)


def _require_fits(event: Event, most: int) -> None:
    size = len(event.content)
    if size > most:
        raise WrongLine(event.line.number, f"its event has {size:,} bytes; the gateway takes {most:,} at most.")
