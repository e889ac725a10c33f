"""Keeps what principals hold, for as long as the project's authorization epoch stands: exact, and without a TTL.

The epoch is bumped in the transaction of every change of a right and is read with the object itself, so that a
decision kept under it is what the authorizer would say now. What was known under an older epoch is never found.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from lakewarden.authz.model import Privilege
from lakewarden.context import CallerKey, PrincipalId

T = TypeVar("T")

CAPACITY = 100_000


@dataclass(frozen=True, slots=True)
class Epoch:
    """A project's authorization epoch, as it was read with the object."""

    project_id: str
    number: int


class DecisionCache(Generic[T]):
    """A bounded map of what is known of callers under an epoch, shared by all threads of a process.

    Not cachetools, whose look-up takes twice as long, under a lock: each request asks here, some several times.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._known: OrderedDict[tuple[CallerKey, str, Epoch], T] = OrderedDict()
        self._lock = Lock()

    def find(self, caller: CallerKey, object_id: str, epoch: Epoch) -> T | None:
        return self._known.get((caller, object_id, epoch))

    def keep(self, caller: CallerKey, object_id: str, epoch: Epoch, found: T) -> None:
        with self._lock:
            self._known[(caller, object_id, epoch)] = found
            while len(self._known) > self._capacity:
                self._known.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


HELD_PRIVILEGES: DecisionCache[frozenset[Privilege]] = DecisionCache()
"""All that a caller holds on an object, implications included."""

CALLER_PRINCIPALS: DecisionCache[tuple[PrincipalId, ...]] = DecisionCache(capacity=10_000)
"""The ids of a caller and of all their roles in a project, by the project's id."""
