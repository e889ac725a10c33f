"""The hourly task of `lakewarden work` that maintains the event log's partitions; `apps` registers it."""

from datetime import UTC, datetime, timedelta

from django.db import close_old_connections
from procrastinate.contrib.django import app

from lakewarden import config
from lakewarden.events.log import PARTITIONS
from lakewarden.prepared_statements import fetch

ABANDONED = timedelta(days=7)
"""A sink that no worker has served for so long, because it was taken out of the settings, keeps no events."""


@app.periodic(cron="11 * * * *")
@app.task(name="keep_event_log", queue="housekeeping", queueing_lock="keep_event_log", pass_context=False)
def keep_event_log(timestamp: int) -> int:
    """Runs each hour (`timestamp`, Unix seconds); returns how many days were removed after their retention."""
    close_old_connections()
    now = datetime.fromtimestamp(timestamp, UTC)
    days = config.current().events.retention_days
    return PARTITIONS.maintain(now, retention_days=days, before=oldest_waiting(now))


def oldest_waiting(now: datetime) -> datetime | None:
    """When the oldest event was logged that a served sink has not received; None: all have received all."""
    rows = fetch(_WAITING, [now - ABANDONED])
    found: datetime | None = rows[0][0] if rows else None
    return found


_WAITING = """
    select at from event_log
    where position > (select min(delivered) from event_sink where seen_at > %s)
    order by position limit 1
"""
