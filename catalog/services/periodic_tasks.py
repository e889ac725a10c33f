"""Periodic tasks of `lakewarden work`: the hourly statistics of warehouses, and the removal of what has expired."""

import logging
from datetime import UTC, datetime, timedelta

from django.db import close_old_connections
from procrastinate.contrib.django import app

from catalog.services import metrics, staged_creations, warehouse_statistics
from lakewarden import config
from lakewarden.idempotency import outcomes
from tenants.services import left_locations, warehouse_secrets

logger = logging.getLogger(__name__)

QUEUE = "housekeeping"


@app.periodic(cron="23 * * * *")
@app.task(name="forget_metrics_reports", queue=QUEUE, queueing_lock="forget_metrics_reports", pass_context=False)
def forget_metrics_reports(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs each hour; returns how many reports were past their retention."""
    close_old_connections()  # a worker's thread has its own, which may have died since the last hour
    days = config.current().catalog.metrics_retention_days
    removed = metrics.forget_expired(older_than=timedelta(days=days))
    logger.info("%d metrics reports were older than %d days and were removed", removed, days)
    return removed


@app.periodic(cron="*/10 * * * *")
@app.task(name="forget_idempotency_keys", queue=QUEUE, queueing_lock="forget_idempotency_keys", pass_context=False)
def forget_idempotency_keys(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs every ten minutes; returns how many keys were past their lifetime."""
    close_old_connections()
    return outcomes.forget_expired()


@app.periodic(cron="*/10 * * * *")
@app.task(name="end_staged_creations", queue=QUEUE, queueing_lock="end_staged_creations", pass_context=False)
def end_staged_creations(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs every ten minutes; returns how many staged creations were past their time."""
    close_old_connections()
    left_locations.forget_unreachable()
    return staged_creations.end_expired()


@app.periodic(cron="*/20 * * * *")
@app.task(name="forget_unused_secrets", queue=QUEUE, queueing_lock="forget_unused_secrets", pass_context=False)
def forget_unused_secrets(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs every 20 minutes, which also keeps a login to Vault alive; returns how many secrets were not used."""
    close_old_connections()
    forgotten = warehouse_secrets.forget_unused()
    if forgotten:
        logger.warning("%d secrets that no warehouse refers to were deleted", forgotten)
    return forgotten


@app.periodic(cron="58 * * * *")
@app.task(name="keep_warehouse_statistics", queue=QUEUE, queueing_lock="keep_warehouse_statistics", pass_context=False)
def keep_warehouse_statistics(timestamp: int) -> int:
    """Runs at the end of each hour (`timestamp`, seconds since 1970); returns how many old hours are gone."""
    close_old_connections()
    warehouse_statistics.keep_hour(datetime.fromtimestamp(timestamp, UTC))
    days = config.current().catalog.statistics_retention_days
    return warehouse_statistics.forget_expired(older_than=timedelta(days=days))
