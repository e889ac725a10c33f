"""Removal of a dropped table's files: queued in the transaction of the drop, done by a worker, safe to run again."""

import logging
from typing import Any

from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from lakewarden import backends
from lakewarden.storage.profiles import parse_profile

logger = logging.getLogger(__name__)

QUEUE = "tabular_purge"


@app.task(
    queue=QUEUE,
    name="purge_location",
    retry=RetryStrategy(max_attempts=15, exponential_wait=2),  # seconds: 2, 4, 8 … the last one after 9 hours
)
def purge_location(profile: dict[str, Any], location: str) -> int:
    """Remove every file below `location`; returns how many went. A file that is gone already is no error."""
    removed = sum(1 for _ in backends.storage(parse_profile(profile)).delete_below(location))
    logger.info("purged %s: %d files", location, removed)
    return removed


def request(profile: dict[str, Any], location: str) -> None:
    """Queue the removal, part of the caller's transaction: it runs if and only if that commits."""
    purge_location.configure(lock=location).defer(profile=profile, location=location)
