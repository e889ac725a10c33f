"""What operators do with the delivery of events: deliver again, and handle what a sink refused. Each is a change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction

from lakewarden.context import RequestContext
from lakewarden.errors import NotFound
from lakewarden.events import dead_letters, progress
from lakewarden.events.change_recording import Change, record


@dataclass(frozen=True, slots=True)
class Replay:
    """`events` is how many positions of the log are delivered again; filters of the sink are ignored."""

    sink: str
    since: datetime
    events: int


def replay(sink: str, *, since: datetime, dry_run: bool, context: RequestContext) -> Replay:
    """Deliver again what was logged since a time; with `dry_run` it is only counted. Raises NotFound."""
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    with transaction.atomic():
        count = progress.count_since(sink, since=since) if dry_run else progress.replay(sink, since=since)
        if count is None:
            raise _unknown(sink)
        if not dry_run:
            data = {"since": since.isoformat(), "events": count}
            record(Change("replayEvents", "event-sink", sink, data=data), context)
    return Replay(sink, since, count)


def send_again(sink: str, ids: Sequence[int] | None, *, context: RequestContext) -> int:
    """Ask for one more attempt with a sink's dead letters (None: all); returns how many. Raises NotFound."""
    return _changed("sendDeadLetters", sink, ids, context)


def drop(sink: str, ids: Sequence[int] | None, *, context: RequestContext) -> int:
    """Delete a sink's dead letters (None: all); returns how many. Raises NotFound."""
    return _changed("dropDeadLetters", sink, ids, context)


def _changed(event: str, sink: str, ids: Sequence[int] | None, context: RequestContext) -> int:
    verb = dead_letters.send_again if event == "sendDeadLetters" else dead_letters.drop
    with transaction.atomic():
        count = verb(sink, ids)
        if not count and sink not in {each.name for each in progress.sinks()}:
            raise _unknown(sink)
        if count:
            record(Change(event, "event-sink", sink, data={"count": count}), context)
    return count


def _unknown(sink: str) -> NotFound:
    known = ", ".join(each.name for each in progress.sinks()) or "none"
    return NotFound(f"The sink {sink[:80]!r} does not exist: no worker has ever served it (known: {known})")
