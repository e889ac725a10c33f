"""Sends a file, or what comes on standard input, and says how far it is."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ingest.client.client import IngestClient
from ingest.client.errors import NotResumable, Refused, WrongLine
from ingest.client.files import batches, state
from ingest.client.files.batches import Batch
from ingest.client.files.formats import Event, Reader
from ingest.client.files.lines import Line, Place, Source, ticking
from ingest.client.files.state import NOTHING, Sent, State
from ingest.client.messages import Ack

LINGER_S = 1.0
"""An event from standard input waits no longer than this for others to come into its batch."""

_INDEX = re.compile(r"\bevents?\[(\d+)\]")


@dataclass(slots=True)
class Totals:
    """Counts of this run; `duplicates`: batches that the gateway had already."""

    events: int = 0
    batches: int = 0
    duplicates: int = 0
    in_fallback: int = 0
    already: int = 0
    """Events that an earlier run has sent."""
    began: float = field(default_factory=time.monotonic)

    def sentence(self, source: str) -> str:
        seconds = time.monotonic() - self.began
        parts = [f"{self.events:,} events in {self.batches:,} batches acknowledged in {seconds:.1f} s"]
        parts += [f"{self.already:,} were sent before"] if self.already else []
        parts += [f"{self.duplicates} batches were in the log already"] if self.duplicates else []
        parts += [f"{self.in_fallback} batches wait in the gateway's fallback file"] if self.in_fallback else []
        return f"{'; '.join(parts)}; source {source}"


Progress = Callable[[Totals, int], None]
"""Called with the counts and the bytes of the input that were read."""


class Sending:
    """One run. `client` must call `acknowledged` for each acknowledgement; `state_file` is None for standard input."""

    def __init__(self, *, state: State | None, state_file: Path | None, progress: Progress) -> None:
        self.totals = Totals()
        self._state, self._state_file, self._progress = state, state_file, progress
        self._unanswered: dict[int, Batch] = {}
        self._consumed = 0

    def acknowledged(self, ack: Ack) -> None:
        batch = self._unanswered.pop(ack.sequence_number, None)
        if self._state is not None:
            self._state.acknowledge(ack.sequence_number)
        if batch is None:
            return
        self.totals.events += len(batch.events)
        self.totals.batches += 1
        self.totals.duplicates += ack.status in {"duplicate", "persisted"}
        self.totals.in_fallback += ack.status == "fallback"
        self._progress(self.totals, self._consumed)

    def file(self, client: IngestClient, source: Source, read: Reader) -> None:
        """Raises `WrongLine`, `NotResumable`, `Refused` and the client's errors; what is acknowledged is noted."""
        if self._state is None or self._state_file is None:
            raise NotResumable("A file needs a state.")
        begin = self._state.resume(client.connect(), kept_in=self._state_file)
        self.totals.already = self._state.events
        self._state.write(self._state_file)
        try:
            self._send(client, _batches(source.lines(begin.place), read, client, begin), source)
        finally:
            self._state.write(self._state_file)

    def stream(self, client: IngestClient, source: Source, read: Reader) -> None:
        """Standard input: what was acknowledged before is not skipped, because it cannot be read again."""
        client.connect()
        self._send(client, _batches(ticking(source.lines(Place()), every_s=LINGER_S), read, client, NOTHING), source)

    def _send(self, client: IngestClient, found: Iterator[Batch | None], source: Source) -> None:
        wrong: WrongLine | None = None
        try:
            for batch in found:
                if batch is None:
                    client.poll()
                    continue
                self._consumed = source.consumed if source.size is not None else batch.end.offset
                self._send_one(client, batch)
        except WrongLine as error:
            wrong = error  # the lines before it are sent, and acknowledged, first
        try:
            client.wait()
        except Refused as error:
            raise self._explained(error) from None
        if wrong is not None:
            raise wrong

    def _send_one(self, client: IngestClient, batch: Batch) -> None:
        number = client.next_number
        self._unanswered[number] = batch
        self._note(number, batch)
        try:
            client.send_encoded(batch.contents, span=batch.span)
        except Refused as error:
            raise self._explained(error) from None

    def _note(self, number: int, batch: Batch) -> None:
        if self._state is None or self._state_file is None:
            return
        self._state.sent.append(Sent(number, batch.end, batch.span[1], len(batch.events)))
        self._state.write(self._state_file)

    def _explained(self, error: Refused) -> Refused:
        """With the input's line numbers in place of the indexes of events in the batch."""
        batch = None if error.sequence_number is None else self._unanswered.get(error.sequence_number)
        if batch is None:
            return error

        def line(found: re.Match[str]) -> str:
            number = batch.line_of(int(found[1]))
            return found[0] if number is None else f"line {number}"

        first, last = batch.events[0].line.number, batch.events[-1].line.number
        message = f"{_INDEX.sub(line, error.message)} (it holds lines {first} to {last})"
        return Refused(message, reason=error.reason, sequence_number=error.sequence_number)


def _batches(
    lines: Iterator[Line] | Iterator[Line | None], read: Reader, client: IngestClient, begin: Sent
) -> Iterator[Batch | None]:
    return batches.cut(batches.events(lines, read, after=begin.sequence), client.limits)


def check(source: Source, read: Reader, *, most: int = 20) -> tuple[int, list[WrongLine]]:
    """The number of events in the whole input, and its wrong lines, up to `most`; nothing is sent."""
    wrong: list[WrongLine] = []
    count, last = 0, -1
    for line in source.lines(Place()):
        try:
            found = list(batches.events(iter([line]), read, after=last))
        except WrongLine as error:
            wrong.append(error)
            if len(wrong) == most:
                break
            continue
        for event in found:
            if isinstance(event, Event):
                count, last = count + 1, event.sequence
    return count, wrong


def load_state(path: Path, *, file: Path, address: str, options: dict[str, str], source: str, restart: bool) -> State:
    """The state of an earlier run, or a fresh one. Raises `NotResumable`."""
    before = None if restart else state.read(path)
    if before is None:
        return State(address, source, options)
    before.require_same(address=address, options=options, file=file, kept_in=path)
    return before
