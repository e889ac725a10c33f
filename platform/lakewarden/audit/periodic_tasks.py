"""The hourly task of `lakewarden work` that maintains the audit's partitions; `apps` registers it."""

from datetime import UTC, datetime

from django.db import close_old_connections
from procrastinate.contrib.django import app

from lakewarden import config
from lakewarden.audit.partitions import PARTITIONS


@app.periodic(cron="7 * * * *")
@app.task(name="keep_audit_partitions", queue="housekeeping", queueing_lock="keep_audit_partitions", pass_context=False)
def keep_audit_partitions(timestamp: int) -> int:
    """Runs each hour (`timestamp`, Unix seconds); returns how many days were removed after their retention."""
    # each thread has its own connection, which may have been closed by the server since the last run
    close_old_connections()
    now = datetime.fromtimestamp(timestamp, UTC)
    return PARTITIONS.maintain(now, retention_days=config.current().audit.retention_days)
