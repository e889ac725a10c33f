"""Remembers what loads returned besides the metadata, for hot reads of tables whose files need more than a path."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple
from uuid import UUID

from cachetools import LRUCache

from catalog.models import Tabular
from catalog.models.namespace import path_key
from catalog.services.client_access import Addition
from lakewarden import config
from lakewarden.authz.decision_cache import Epoch
from lakewarden.hot.coalescer import Key
from lakewarden.storage.client_access import AccessLevel, Delegation


class Loaded(NamedTuple):
    """Everything on which an addition depends.

    The epoch stands for the warehouse's profile and credential: changing them begins another one. `place` is the
    warehouse's id with the keys of the namespace's path and of the name, of which the routes are made.
    """

    identifier: UUID
    version: int
    epoch: Epoch
    place: Key
    level: AccessLevel | None
    wanted: frozenset[Delegation]
    base_uri: str


class KeptAdditions:
    """Shared by all threads of a process."""

    def __init__(self, capacity: int, *, clock: Callable[[], float] = time.time) -> None:
        self._kept: LRUCache[Loaded, Addition] = LRUCache(capacity)
        self._lock = Lock()
        self._now = clock

    def find(self, loaded: Loaded) -> Addition | None:
        """None if it is not known, or its credentials are not fresh any more."""
        with self._lock:
            kept = self._kept.get(loaded)
        return None if kept is None or kept.fresh_until <= self._now() else kept

    def keep(self, loaded: Loaded, addition: Addition) -> None:
        with self._lock:
            self._kept[loaded] = addition


ADDITIONS: Final = KeptAdditions(config.current().storage.max_kept_credentials)


def loaded(tabular: Tabular, level: AccessLevel | None, wanted: frozenset[Delegation], base_uri: str) -> Loaded:
    """For a table that was read with its namespace, warehouse and project."""
    namespace = tabular.namespace
    project = namespace.warehouse.project
    return Loaded(
        tabular.id,
        tabular.version,
        Epoch(project.id, project.authz_epoch),
        (namespace.warehouse_id, path_key(namespace.path), tabular.name_key),
        level,
        wanted,
        base_uri,
    )
