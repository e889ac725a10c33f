"""The task of `lakewarden work` that limits the outbox by days and by rows; `apps` registers it.

Events that an enabled sink (`EventSink`) has not received yet are kept, whatever their age and number.
"""

import logging

from django.db import close_old_connections
from procrastinate.contrib.django import app

from lakewarden import config
from lakewarden.config import EventsConfig
from lakewarden.retention import forget

logger = logging.getLogger(__name__)


@app.periodic(cron="*/10 * * * *")
@app.task(name="forget_events", queue="housekeeping", queueing_lock="forget_events", pass_context=False)
def forget_events(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs every ten minutes; returns how many events were removed."""
    close_old_connections()
    removed = forget_expired(config.current().events)
    if removed:
        logger.info("%d events were past their retention and were removed", removed)
    return removed


def forget_expired(settings: EventsConfig) -> int:
    """Remove delivered events, oldest first, that are too old or beyond the largest number; returns how many."""
    limits: dict[str, object] = {"days": settings.retention_days, "rows": settings.max_rows}
    return forget("outbox_event", first="sequence", expired=_EXPIRED, parameters=limits)


# counted by sequence, which is cheap; sequences have gaps, so a little fewer rows than allowed are kept
_EXPIRED = """
    (created_at < now() - make_interval(days => %(days)s)
     or sequence <= (select max(sequence) from outbox_event) - %(rows)s::bigint)
    and sequence <= coalesce((select min(delivered) from event_sink), sequence)
"""
