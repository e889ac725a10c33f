"""Collects allowed decisions until the background writer stores them, for `http.call_recording` and the hot routes.

Equal decisions (caller, assumed role, action, object) of one interval become one entry with a count: an engine that
loads a table a thousand times a second causes one row a second. Values that a caller can choose freely, such as the
user agent, are not part of the key. Otherwise a caller could cause one row for each request.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

from lakewarden import config
from lakewarden.audit.entries import Entry
from lakewarden.audit.losses import OVERFULL, Lost
from lakewarden.context import Allowed

Key = tuple[str, str | None, str, str, str]
"""Actor, assumed role, action, object type, object id."""


@dataclass(slots=True)
class Group:
    """Equal decisions, from `at` to `last_at`; `request_id` and `user_agent` are those of the first one."""

    allowed: Allowed
    request_id: str
    user_agent: str = ""
    count: int = 1
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    last_at: datetime | None = None


class Decisions:
    """The decisions of all threads that are not written yet; bounded in total and for each caller.

    Decisions that do not fit are only counted, by project and by the caller who had too many.
    """

    def __init__(self, capacity: int | None = None, of_one_caller: int | None = None) -> None:
        self._capacity = capacity
        self._of_one_caller = of_one_caller
        self._lock = Lock()
        self._forget()

    def again(self, key: Key) -> bool:
        """Count a decision again if an equal one is pending; returns False if there is none."""
        with self._lock:
            group = self._groups.get(key)
            if group is None:
                return False
            group.count += 1
            group.last_at = datetime.now(UTC)
            return True

    def add(self, key: Key, group: Group) -> None:
        """Keep a decision for which `again` returned False."""
        limits = config.current().audit
        with self._lock:
            known = self._groups.get(key)
            if known is not None:
                known.count += group.count
                moments = [known.at, group.at, known.last_at or known.at, group.last_at or group.at]
                known.at, known.last_at = min(moments), max(moments)
            elif len(self._groups) >= (self._capacity or limits.groups):
                self._lost[group.allowed.project_id, OVERFULL] += group.count
            elif self._of[key[0]] >= (self._of_one_caller or limits.decisions_of_one_caller):
                self._lost[group.allowed.project_id, key[0]] += group.count
            else:
                self._groups[key] = group
                self._of[key[0]] += 1

    def take(self) -> tuple[dict[Key, Group], Lost]:
        """Remove and return all decisions, and how many were lost."""
        with self._lock:
            taken = self._groups, self._lost
            self._forget()
        return taken

    def give_back(self, groups: dict[Key, Group], lost: Lost) -> None:
        """Keep what could not be written, as far as there is room next to what arrived meanwhile."""
        self.lose(lost)
        for key, group in groups.items():
            self.add(key, group)

    def lose(self, lost: Lost) -> None:
        """Count decisions that will have no row."""
        with self._lock:
            self._lost.update(lost)

    def _forget(self) -> None:
        self._groups: dict[Key, Group] = {}
        self._of: Counter[str] = Counter()
        self._lost: Lost = Counter()


DECISIONS = Decisions()


def are_recorded() -> bool:
    """Whether allowed decisions are recorded (`audit.decisions`)."""
    return config.current().audit.decisions == "all"


def entries(groups: dict[Key, Group]) -> Iterable[Entry]:
    for (actor, role, action, object_type, object_id), group in groups.items():
        yield Entry(
            at=group.at,
            last_at=group.last_at,
            actor=actor,
            assumed_role=role or "",
            action=action,
            object_type=object_type,
            object_id=object_id,
            project_id=group.allowed.project_id,
            outcome="allowed",
            request_id=group.request_id,
            user_agent=group.user_agent,
            count=group.count,
            details={"privileges": list(group.allowed.privileges)},
        )
