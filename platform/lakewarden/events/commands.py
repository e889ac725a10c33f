"""`lakewarden events`: how far sinks are, and delivering again."""

from collections.abc import Iterator
from datetime import UTC, datetime

from lakewarden.events import progress
from lakewarden.events.progress import Progress


class UnknownSink(Exception):
    """No worker has ever served a sink with this name."""


def status_lines() -> Iterator[str]:
    yield f"{progress.unlogged()} events wait for a worker"
    found = progress.sinks()
    if not found:
        yield "No sink was ever served: set LAKEWARDEN__EVENTS__SINKS__<NAME>__… and start `lakewarden work`"
    yield from map(_line, found)


def replayed(sink: str, since: datetime) -> str:
    """Raises UnknownSink."""
    count = progress.replay(sink, since=since if since.tzinfo else since.replace(tzinfo=UTC))
    if count is None:
        known = ", ".join(each.name for each in progress.sinks()) or "none"
        raise UnknownSink(f"{sink!r} is not a sink that any worker has served (known: {known})")
    return f"{count} events will be delivered again to {sink!r}"


def _line(sink: Progress) -> str:
    parts = [f"{sink.name}: {sink.waiting} events wait"]
    if sink.oldest is not None:
        parts.append(f"the oldest since {sink.oldest.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    if sink.failing_since is not None:
        parts.append(f"failing since {sink.failing_since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC: {sink.failure}")
    if sink.dead_letters:
        parts.append(f"{sink.dead_letters} in event_dead_letter")
    return ", ".join(parts)
