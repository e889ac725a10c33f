"""What `lakewarden events` prints: how far sinks are, delivering again, and what sinks refused."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from lakewarden.context import SYSTEM, Caller, RequestContext
from lakewarden.events import administration, dead_letters, progress
from lakewarden.events.dead_letters import Letter
from lakewarden.events.progress import Progress
from lakewarden.ids import new_id


def status_lines() -> Iterator[str]:
    yield f"{_events(progress.unlogged())} for a worker"
    found = progress.sinks()
    if not found:
        yield "No sink was ever served: set LAKEWARDEN__EVENTS__SINKS__<NAME>__… and start `lakewarden work`"
    yield from map(_line, found)


def replayed(sink: str, since: datetime, *, dry_run: bool = False) -> str:
    """Raises NotFound."""
    found = administration.replay(sink, since=since, dry_run=dry_run, context=_context("replay"))
    verb = "would be" if dry_run else "will be"
    return f"{_counted(found.events)} {verb} delivered again to {sink!r}"


def letter_lines(*, sink: str | None, after: int, limit: int) -> Iterator[str]:
    found = dead_letters.listed(sink=sink, after=after, limit=limit)
    if not found:
        yield "No sink has refused an event" if sink is None else f"The sink {sink!r} has refused no event"
    yield from map(_letter, found)
    if len(found) == limit:
        yield f"There may be more: --after {found[-1].id}"


def shown_letter(identifier: int) -> str:
    """Raises NotFound."""
    return json.dumps(dead_letters.get(identifier).event, indent=2, ensure_ascii=False)


def sent_again(sink: str, ids: Sequence[int]) -> str:
    """Raises NotFound."""
    count = administration.send_again(sink, ids or None, context=_context("dead-letters send"))
    return f"{_counted(count)} will be sent once more to {sink!r}"


def dropped(sink: str, ids: Sequence[int]) -> str:
    """Raises NotFound."""
    count = administration.drop(sink, ids or None, context=_context("dead-letters drop"))
    return f"{_counted(count)} of {sink!r} {'was' if count == 1 else 'were'} dropped"


def _context(command: str) -> RequestContext:
    return RequestContext(caller=Caller(SYSTEM), request_id=str(new_id()), user_agent=f"lakewarden events {command}")


def _line(sink: Progress) -> str:
    parts = [f"{sink.name}: {_events(sink.waiting)}"]
    if sink.oldest is not None:
        parts.append(f"the oldest since {_clock(sink.oldest)}")
    if sink.rate:
        parts.append(f"{sink.rate:.1f} per second in the last minute")
    if sink.failing_since is not None:
        parts.append(f"failing since {_clock(sink.failing_since)}: {sink.failure}")
    if sink.dead_letters:
        parts.append(f"{_counted(sink.dead_letters)} refused (`lakewarden events dead-letters list`)")
    return ", ".join(parts)


def _letter(letter: Letter) -> str:
    attempts = "1 attempt" if letter.attempts == 1 else f"{letter.attempts} attempts since {_clock(letter.first_at)}"
    again = ", will be sent once more" if letter.again else ""
    return (
        f"{letter.id}: {letter.sink}, {letter.type} {letter.event_id}, {attempts}, last {_clock(letter.last_at)}: "
        f"{letter.reason}{again}"
    )


def _events(count: int) -> str:
    return f"{_counted(count)} {'waits' if count == 1 else 'wait'}"


def _counted(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
