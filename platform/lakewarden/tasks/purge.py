"""Removal of a dropped table's files: queued in the transaction of the drop, done by a worker, safe to run again."""

import logging
import time
from typing import Any
from uuid import UUID

from procrastinate.contrib.django import app

from lakewarden import backends
from lakewarden.storage.profiles import parse_profile
from lakewarden.tasks import records
from lakewarden.tasks.attempts import Retries, attempt
from lakewarden.tasks.queues import PURGE
from lakewarden.tasks.scope import Entity, Scope

logger = logging.getLogger(__name__)

QUEUE = PURGE
HEARTBEAT_S = 5.0


@app.task(queue=QUEUE, name="purge_location", retry=Retries())
def purge_location(profile: dict[str, Any], location: str, task_id: str | None = None) -> int:
    """Remove every file below `location`; returns how many went. A file that is gone already is no error.

    Jobs that an older release has queued have no `task_id`, and no record.
    """
    removed, told = 0, time.monotonic()
    with attempt(task_id) as run:
        run.heartbeat()
        for _ in backends.storage(parse_profile(profile)).delete_below(location):
            removed += 1
            run.details["files-removed"] = removed
            if time.monotonic() - told > HEARTBEAT_S:
                run.heartbeat()
                told = time.monotonic()
        run.details["files-removed"] = removed
        run.message = f"{removed} files removed"
    logger.info("purged %s: %d files", location, removed)
    return removed


def request(profile: dict[str, Any], location: str, *, scope: Scope, entity: Entity) -> UUID:
    """Queue the removal, part of the caller's transaction: it runs if and only if that commits; returns its id."""
    arguments = {"profile": profile, "location": location}
    return records.add(purge_location, arguments, scope=scope, entity=entity, lock=location)
