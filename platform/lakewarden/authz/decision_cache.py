"""Caches privileges for as long as the project's authorization epoch stays the same: always exact, without a TTL.

Every change of a right raises the epoch in its own transaction, and the epoch is read in the same query as the
object. So a decision cached under the current epoch is what the authorizer would answer now. Entries of older epochs
are never found again and are evicted in time.
"""

from collections import OrderedDict
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from lakewarden.authz.model import Privilege
from lakewarden.context import CallerKey, PrincipalId

T = TypeVar("T")

CAPACITY = 100_000


class Epoch(NamedTuple):
    """A project's authorization epoch, as it was read with the object."""

    project_id: str
    number: int


class DecisionCache(Generic[T]):
    """A bounded map from caller, object and epoch to a result; all threads of a process share it.

    Not cachetools: its look-up needs a lock and takes twice as long, and every request looks up here at least once.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._known: OrderedDict[tuple[CallerKey, str, Epoch], T] = OrderedDict()
        self._lock = Lock()
        self.made = 0
        """How many results were not known and have been found out."""

    def __len__(self) -> int:
        return len(self._known)

    def find(self, caller: CallerKey, object_id: str, epoch: Epoch) -> T | None:
        return self._known.get((caller, object_id, epoch))

    def keep(self, caller: CallerKey, object_id: str, epoch: Epoch, found: T) -> None:
        with self._lock:
            self._known[(caller, object_id, epoch)] = found
            self.made += 1
            while len(self._known) > self._capacity:
                self._known.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


HELD_PRIVILEGES: DecisionCache[frozenset[Privilege]] = DecisionCache()
"""All privileges of a caller on an object, including implied and inherited ones."""

CALLER_PRINCIPALS: DecisionCache[tuple[PrincipalId, ...]] = DecisionCache(capacity=10_000)
"""The ids of a caller and of all their roles in a project; the project's id is the key."""
