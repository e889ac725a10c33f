"""How far sinks are, and how they are set back; for the command line and `doctor`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lakewarden.events import log
from lakewarden.prepared_statements import fetch


@dataclass(frozen=True, slots=True)
class Progress:
    """`waiting` is the number of events that a sink has not received, by their positions; filters are ignored.

    `rate` is in events per second, in about the last minute.
    """

    name: str
    waiting: int
    oldest: datetime | None
    failure: str
    failing_since: datetime | None
    seen_at: datetime | None
    dead_letters: int
    sent: int
    rate: float


def sinks() -> list[Progress]:
    """Of all sinks that any worker has served."""
    return [Progress(*row) for row in fetch(_SINKS, [])]


def unlogged() -> int:
    """Events that wait in the outbox for a worker; at most 100,000 are counted."""
    ((count,),) = fetch("select count(*) from (select 1 from outbox_event limit 100000) o", [])
    return int(count)


def replay(sink: str, *, since: datetime) -> int | None:
    """Deliver again what was logged since a time; returns how many events, None if the sink is not known.

    The worker that serves the sink loses its lease, and goes on from there.
    """
    rows = fetch(_SET_BACK, [log.position_before(since), sink])
    return None if not rows else max(log.last_position() - int(rows[0][0]), 0)


def count_since(sink: str, *, since: datetime) -> int | None:
    """How many events `replay` would deliver, without doing it."""
    rows = fetch("select delivered from event_sink where name = %s", [sink])
    return None if not rows else max(log.last_position() - min(int(rows[0][0]), log.position_before(since)), 0)


_SINKS: Final = """
    select s.name, greatest((select coalesce(max(position), 0) from event_log) - s.delivered, 0),
           (select at from event_log where position > s.delivered order by position limit 1),
           s.failure, s.failing_since, s.seen_at,
           (select count(*) from event_dead_letter d where d.sink = s.name), s.sent,
           coalesce(s.recently_sent / greatest(extract(epoch from now() - s.recent_since), 1), 0)::float8
    from event_sink s order by s.name
"""
_SET_BACK: Final = """
    update event_sink set delivered = least(delivered, %s), leased_by = '', leased_until = null where name = %s
    returning delivered
"""
