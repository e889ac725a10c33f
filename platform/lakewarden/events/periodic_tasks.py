"""The task of `lakewarden work` that bounds the outbox by days and by rows; `apps` makes it known.

An event that an enabled sink (`EventSink`) has not had yet stays, however old it is and however many there are.
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
    """Runs every ten minutes; returns how many events went."""
    close_old_connections()
    removed = forget_expired(config.current().events)
    if removed:
        logger.info("%d events were past their retention and were removed", removed)
    return removed


def forget_expired(settings: EventsConfig) -> int:
    """Remove, oldest first, what is too old or too much and was delivered everywhere."""
    limits: dict[str, object] = {"days": settings.retention_days, "rows": settings.max_rows}
    return forget("outbox_event", first="sequence", expired=_EXPIRED, parameters=limits)


# sequences have gaps, so that somewhat fewer rows than allowed are kept
_EXPIRED = """
    (created_at < now() - make_interval(days => %(days)s)
     or sequence <= (select max(sequence) from outbox_event) - %(rows)s::bigint)
    and sequence <= coalesce((select min(delivered) from event_sink), sequence)
"""
