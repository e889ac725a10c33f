"""What of a file is sent and acknowledged, beside the file, so that the next run goes on where this one ended.

A batch is noted before it is sent. So after a kill at any moment, the number that the gateway has acknowledged last
leads to the place in the file behind that batch, even if the file has grown in between.
"""

import os
from pathlib import Path

import msgspec

from ingest.client.errors import IngestError, NotResumable
from ingest.client.files.lines import Place

SUFFIX = ".ingest-state.json"


class Sent(msgspec.Struct, frozen=True):
    """A batch: its number, the place in the file behind it, its last event's sequence, its number of events."""

    number: int
    place: Place
    sequence: int
    events: int


NOTHING = Sent(number=0, place=Place(), sequence=-1, events=0)


class State(msgspec.Struct):
    """`options`: what must stay the same for the same lines to become the same events."""

    address: str
    source: str
    options: dict[str, str]
    acked: Sent = NOTHING
    events: int = 0
    sent: list[Sent] = []

    def require_same(self, *, address: str, options: dict[str, str], file: Path, kept_in: Path) -> None:
        """Raises `NotResumable` if the state belongs to another input or target."""
        remedy = f"Give --restart to send the whole file again, under a new source; {kept_in} is then replaced."
        if self.address != address:
            raise NotResumable(f"{file} was sent to {self.address} before, not to {address}. {remedy}")
        for name in self.options.keys() | options.keys():
            before, now = self.options.get(name, ""), options.get(name, "")
            if before != now:
                raise NotResumable(f"{file} was sent with --{name} {before or 'left out'} before. {remedy}")

    def resume(self, durable: int, *, kept_in: Path) -> Sent:
        """The batch behind which the next one begins: `durable` is the last one that the gateway acknowledged."""
        known = {each.number: each for each in (self.acked, *self.sent)}
        if durable not in known:
            raise NotResumable(
                f"The gateway acknowledged batch {durable} of source {self.source!r} last, but {kept_in} knows "
                f"batches {min(known)} to {max(known)}. Was the source used elsewhere, or is it another gateway? "
                "Give --restart to send the whole file again, under a new source."
            )
        for each in [each for each in self.sent if each.number <= durable]:
            self.acknowledge(each.number)
        self.sent.clear()
        return self.acked

    def acknowledge(self, number: int) -> int:
        """Returns the number of events of the batch."""
        done = next((each for each in self.sent if each.number == number), None)
        if done is None:
            return 0
        self.sent.remove(done)
        self.events += done.events
        self.acked = max(self.acked, done, key=lambda each: each.number)
        return done.events

    def write(self, path: Path) -> None:
        """Whole or not at all. Raises `IngestError`."""
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
            fresh.replace(path)
        except OSError as error:
            raise IngestError(
                f"The state file {path} cannot be written ({error.strerror}): give --state FILE with another place."
            ) from error


def read(path: Path) -> State | None:
    """None if there is none. Raises `NotResumable` if it is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise NotResumable(f"The state file {path} cannot be read: {error}") from error
