"""Removal of a dropped table's files: queued in the transaction of the drop, done by a worker, safe to run again."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from procrastinate.contrib.django import app

from lakewarden import backends
from lakewarden.prepared_statements import fetch
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.profiles import parse_profile
from lakewarden.storage.removal import Found
from lakewarden.tasks import queue_settings, records
from lakewarden.tasks.attempts import Attempt, Retries, attempt
from lakewarden.tasks.purge_ledger import Ledger
from lakewarden.tasks.queues import PURGE, QUEUES
from lakewarden.tasks.scope import Entity, Scope

logger = logging.getLogger(__name__)

QUEUE = PURGE
AT_ONCE = "deletions-at-once"
HEARTBEAT_S = 5.0
BATCH = 1000
MOST_SURVEYS, MOST_IDLE = 20, 2


class Rule(Protocol):
    """What the owner of locations says of a purge; `owner` is the id of the object whose files go, None: not known."""

    def ensure_own(self, location: str, owner: str | None) -> None:
        """Raises StorageError when something that is not the owner's lies at, in or around `location`."""
        ...

    def settled(self, location: str, owner: str | None) -> None:
        """Nothing is left there: the place is free."""
        ...


class _NoRule:
    """Nothing is removed before somebody says whose it is."""

    def ensure_own(self, location: str, owner: str | None) -> None:
        raise StorageError(f"It is not known whether {location} belongs only to {owner}: nothing was removed")

    settled = ensure_own


_RULE: Rule = _NoRule()


def obey(rule: Rule) -> None:
    """Have `rule` asked before each batch; it replaces the one before."""
    global _RULE  # noqa: PLW0603 one for the process, set at its start
    _RULE = rule


@app.task(queue=QUEUE, name="purge_location", retry=Retries())
def purge_location(
    profile: dict[str, Any], location: str, task_id: str | None = None, within: str | None = None
) -> int:
    """Remove every file below `location`, and the folders that are empty then; returns how many files went in all.

    A file that is already gone is not an error. Jobs that an older release has queued have no `task_id`, and no record.
    """
    with attempt(task_id) as run:
        store = backends.storage(parse_profile(profile))
        owner, at_once = _about(task_id)
        purge = _Purge(run, store, location, within or location.rpartition("/")[0], owner, at_once)
        purge.begin()
        purge.run_to_the_end()
    logger.info("purged %s: %s", location, run.message)
    return int(run.details["files-removed"])


def request(
    profile: dict[str, Any],
    location: str,
    *,
    scope: Scope,
    entity: Entity,
    not_before: datetime | None = None,
    within: str | None = None,
) -> UUID:
    """Queue the removal, part of the caller's transaction: it runs if and only if that commits; returns its id.

    It waits until `not_before`. Folders around the location that are empty then are removed as far as they lie in
    `within` (None: they stay).
    """
    arguments = {"profile": profile, "location": location} | ({"within": within} if within else {})
    return records.add(purge_location, arguments, scope=scope, entity=entity, lock=location, scheduled_for=not_before)


@dataclass
class _Purge:
    run: Attempt
    store: Storage
    location: str
    within: str
    owner: str | None
    at_once: int

    def begin(self) -> None:
        """Raises StorageError when the store is not there: what cannot be seen is not gone."""
        self.ledger = Ledger(self.run, self.location)
        self._tell()
        self.run.heartbeat()
        self._reported_at = time.monotonic()
        self.store.ensure_there()
        if begun := self.ledger.unsettled():
            self._remove(begun, is_begun=True)

    def run_to_the_end(self) -> None:
        """Until nothing is found that can be removed, twice in a row. Raises StorageError when something is left."""
        surveys, idle = 0, 0
        while surveys < MOST_SURVEYS and idle < MOST_IDLE:
            surveys += 1
            idle = 0 if self._survey() else idle + 1
        if not self.store.is_empty(self.location):
            raise StorageError(
                f"After {surveys} rounds something still remains at {self.location}: "
                "another process may be writing there"
            )
        _RULE.settled(self.location, self.owner)
        self.ledger.close()
        total = self.ledger.total
        self.run.message = f"{total.files} files removed ({total.bytes} bytes), and {total.folders} folders"

    def _survey(self) -> bool:
        """Whether anything was removed."""
        progress, found = False, self.store.survey(self.location, within=self.within)
        while batch := list(islice(found, BATCH)):
            self.ledger.announce(batch)
            progress = self._remove(batch) or progress
            if time.monotonic() - self._reported_at > HEARTBEAT_S:
                self.run.heartbeat()
                self._reported_at = time.monotonic()
        return progress

    def _remove(self, found: Sequence[Found], *, is_begun: bool = False) -> bool:
        _RULE.ensure_own(self.location, self.owner)
        removed = self.store.remove(found, within=self.within, at_once=self.at_once)
        gone = removed.gone + removed.missing if is_begun else removed.gone
        self.ledger.settle(gone)
        self._tell()
        if removed.error is not None:
            raise removed.error
        return bool(gone)

    def _tell(self) -> None:
        total = self.ledger.total
        counts = {"files-removed": total.files, "bytes-removed": total.bytes, "folders-removed": total.folders}
        self.run.details = {"location": self.location, **counts}


def _about(task_id: str | None) -> tuple[str | None, int]:
    """The id of the object whose files go, and how many of them at once."""
    rows = fetch("select entity_id, project_id, warehouse_id from task where id = %s", [task_id])
    if not rows:
        return None, QUEUES[QUEUE].settings[AT_ONCE].default
    owner, *scope = rows[0]
    return owner, queue_settings.value(Scope(*scope), QUEUE, AT_ONCE)
