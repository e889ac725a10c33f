"""The hourly task of `lakewarden work` that maintains the audit's partitions; `apps` registers it."""

import logging
from datetime import UTC, datetime

from django.db import close_old_connections
from procrastinate.contrib.django import app

from lakewarden import config
from lakewarden.audit.partitions import PARTITIONS

logger = logging.getLogger(__name__)


@app.periodic(cron="7 * * * *")
@app.task(name="keep_audit_partitions", queue="housekeeping", queueing_lock="keep_audit_partitions", pass_context=False)
def keep_audit_partitions(timestamp: int) -> int:
    """Runs each hour (`timestamp`, Unix seconds); returns how many days were removed after their retention."""
    # each thread has its own connection, which may have been closed by the server since the last run
    close_old_connections()
    now = datetime.fromtimestamp(timestamp, UTC)
    made = PARTITIONS.provide(now)
    gone = PARTITIONS.retire(now, retention_days=config.current().audit.retention_days)
    if made or gone:
        logger.info("the audit has partitions for %d more days; %d old days were removed", len(made), len(gone))
    return len(gone)
