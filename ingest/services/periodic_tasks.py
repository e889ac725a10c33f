"""Periodic tasks of `lakewarden work` that keep the log of change data small."""

import logging
from datetime import UTC, datetime, timedelta

from django.db import close_old_connections
from procrastinate.contrib.django import app

from ingest.services import retention
from lakewarden import config

logger = logging.getLogger(__name__)


@app.periodic(cron="* * * * *")
@app.task(name="keep_ingest_log", queue="housekeeping", queueing_lock="keep_ingest_log", pass_context=False)
def keep_ingest_log(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs each minute; returns how many partitions of flushed batches were dropped."""
    close_old_connections()
    made, dropped, deleted = retention.provide(), retention.drop_flushed(), retention.delete_flushed()
    if made or dropped or deleted:
        logger.info(
            "the log of change data has %d more partitions; %d and %d batches were flushed and are gone",
            made,
            dropped,
            deleted,
        )
    return dropped


@app.periodic(cron="*/5 * * * *")
@app.task(name="keep_kafka_contents", queue="housekeeping", queueing_lock="keep_kafka_contents", pass_context=False)
def keep_kafka_contents(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs every five minutes where Kafka is configured; returns how many records were deleted."""
    settings = config.current().ingest.kafka
    if settings is None:
        return 0
    from ingest.services.kafka.retention import delete_flushed  # noqa: PLC0415 its library is for those who use Kafka

    close_old_connections()
    deleted = delete_flushed(settings, kept=timedelta(hours=settings.kept_hours))
    if deleted:
        logger.info("%d contents of batches were flushed, and are gone from Kafka", deleted)
    return deleted


@app.periodic(cron="17 * * * *")
@app.task(name="forget_ingest_sources", queue="housekeeping", queueing_lock="forget_ingest_sources", pass_context=False)
def forget_ingest_sources(timestamp: int) -> int:
    """Runs each hour (`timestamp`, Unix seconds); returns how many sources, requests and flushes were forgotten."""
    close_old_connections()
    return retention.forget_old(datetime.fromtimestamp(timestamp, UTC))
