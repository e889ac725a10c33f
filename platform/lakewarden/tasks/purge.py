"""Removes the files of dropped tables: queued in the transaction of the drop, run by a worker, safe to repeat."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from procrastinate.contrib.django import app

from lakewarden.prepared_statements import fetch
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.removal import Found
from lakewarden.tasks import queue_settings, scheduling
from lakewarden.tasks.attempts import Attempt, Retries, attempt
from lakewarden.tasks.purge_ledger import Ledger
from lakewarden.tasks.queues import PURGE, QUEUES
from lakewarden.tasks.scope import Entity, Scope

logger = logging.getLogger(__name__)

QUEUE = PURGE
AT_ONCE = "deletions-at-once"
HEARTBEAT_S = 5.0
BATCH = 1000
MOST_SURVEYS, MOST_IDLE, MOST_IDLE_BATCHES = 20, 2, 20


class Rule(Protocol):
    """Opens storages, and checks which files a purge may remove; the catalog implements it.

    `owner` is the key of the dropped object whose files are removed; None: not known.
    """

    def storage(self, warehouse_id: UUID | None, profile: dict[str, Any]) -> Storage:
        """The warehouse's storage; `profile` is what it was when the purge was requested."""
        ...

    def ensure_own(self, location: str, owner: str | None) -> None:
        """Raises StorageError if another object's location equals, contains or is inside `location`."""
        ...

    def settled(self, location: str, owner: str | None) -> None:
        """Called when nothing is left at `location`, which other objects may use from now on."""
        ...


class _NoRule:
    """The rule until `obey` is called: nothing may be removed while its owner is not known."""

    def ensure_own(self, location: str, owner: str | None) -> None:
        raise StorageError(f"It is not known whether {location} belongs only to {owner}: nothing was removed")

    settled = ensure_own

    def storage(self, warehouse_id: UUID | None, profile: dict[str, Any]) -> Storage:  # noqa: ARG002
        raise StorageError("It is not known how storages are opened: nothing was removed")


_RULE: Rule = _NoRule()


def obey(rule: Rule) -> None:
    """Set the rule that is checked before each batch of files; called once, when the process starts."""
    global _RULE  # noqa: PLW0603 one for the process, set at its start
    _RULE = rule


@app.task(queue=QUEUE, name="purge_location", retry=Retries())
def purge_location(
    profile: dict[str, Any],
    location: str,
    task_id: str | None = None,
    within: str | None = None,
    owner: str | None = None,
) -> int:
    """Remove every file below `location`, and folders that are empty then; returns the number of files, all attempts
    together.

    A missing file is not an error. Jobs that an older release queued have no `owner`, which is their task's entity
    then, or not even a `task_id` and a record.
    """
    with attempt(task_id) as run:
        entity_id, warehouse_id, at_once = _about(task_id)
        store = _RULE.storage(warehouse_id, profile)
        purge = _Purge(run, store, location, within or location.rpartition("/")[0], owner or entity_id, at_once)
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
    owner: str,
    not_before: datetime | None = None,
    within: str | None = None,
) -> UUID:
    """Queue a purge in the caller's transaction: it runs only if that commits. Returns the task's id.

    The place belongs to `owner`, the key of the dropped object. It does not start before `not_before`. Folders above
    the location that are empty then are removed, too, if they lie in `within` (None: they stay).
    """
    arguments = _arguments(profile, location, owner=owner, within=within)
    return scheduling.add(
        purge_location, arguments, scope=scope, entity=entity, lock=location, scheduled_for=not_before
    )


def planned(
    profile: dict[str, Any], location: str, *, scope: Scope, entity: Entity, owner: str, within: str
) -> dict[str, Any]:
    """What `request` would queue, for `scheduling.ADDED`."""
    arguments = _arguments(profile, location, owner=owner, within=within)
    return scheduling.planned(purge_location, arguments, scope=scope, entity=entity, lock=location)


def _arguments(profile: dict[str, Any], location: str, *, owner: str, within: str | None) -> dict[str, Any]:
    return {"profile": profile, "location": location, "owner": owner} | ({"within": within} if within else {})


@dataclass
class _Purge:
    run: Attempt
    store: Storage
    location: str
    within: str
    owner: str | None
    at_once: int

    def begin(self) -> None:
        """Raises StorageError if the storage is not available: without it, a missing file does not mean that it is
        removed.
        """
        self.ledger = Ledger(self.run, self.location)
        self._update_details()
        self.run.heartbeat()
        self._reported_at = time.monotonic()
        self.store.ensure_there()
        if begun := self.ledger.unsettled():
            self._remove(begun, is_begun=True)

    def run_to_the_end(self) -> None:
        """List and remove until nothing more can be removed, twice in a row: a writer may still add files.

        Raises StorageError if something is left.
        """
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
        """List and remove once; returns whether anything was removed."""
        progress, idle, found = False, 0, self.store.survey(self.location, within=self.within)
        # a page for each of the requests that may run at a time
        while batch := list(islice(found, BATCH * self.at_once)):
            self.ledger.announce(batch)
            idle = 0 if self._remove(batch) else idle + 1
            if idle > MOST_IDLE_BATCHES:
                raise StorageError(f"The storage lists files at {self.location} which it does not have, and no end")
            progress = progress or not idle
            if time.monotonic() - self._reported_at > HEARTBEAT_S:
                self.run.heartbeat()
                self._reported_at = time.monotonic()
        return progress

    def _remove(self, found: Sequence[Found], *, is_begun: bool = False) -> bool:
        _RULE.ensure_own(self.location, self.owner)
        removed = self.store.remove(found, within=self.within, at_once=self.at_once)
        if removed.error is not None and removed.is_unclear:
            raise removed.error  # the next attempt finds out what is gone, as after a kill
        gone = removed.gone + removed.missing if is_begun else removed.gone
        self.ledger.settle(gone)
        self._update_details()
        if removed.error is not None:
            raise removed.error
        return bool(gone)

    def _update_details(self) -> None:
        total = self.ledger.total
        counts = {"files-removed": total.files, "bytes-removed": total.bytes, "folders-removed": total.folders}
        self.run.details = {"location": self.location, **counts}


def _about(task_id: str | None) -> tuple[str | None, UUID | None, int]:
    """The id of the task's entity, that of its warehouse, and how many files to remove at the same time."""
    rows = fetch("select entity_id, project_id, warehouse_id from task where id = %s", [task_id])
    if not rows:
        return None, None, QUEUES[QUEUE].settings[AT_ONCE].default
    entity_id, project_id, warehouse_id = rows[0]
    return entity_id, warehouse_id, queue_settings.value(Scope(project_id, warehouse_id), QUEUE, AT_ONCE)
