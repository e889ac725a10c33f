"""Sums up what was allowed until the recorder's thread writes it, for `http.observation` and the hot routes.

Equal decisions (who, as which role, what, on which object, with which program) of one interval are one entry with
their number: an engine that loads a table a thousand times a second leaves one row a second.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Final

from lakewarden import config
from lakewarden.audit.entries import Entry
from lakewarden.context import Allowed

CAPACITY: Final = 10_000

Key = tuple[str, str | None, str, str, str, str]
"""Actor, assumed role, action, object type, object id, user agent."""


@dataclass(slots=True)
class Group:
    """Equal decisions; `request_id` is that of the first, which was `at`."""

    allowed: Allowed
    request_id: str
    count: int = 1
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


class Decisions:
    """What is not written yet, of all threads; bounded: decisions that do not fit are counted for their project."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._groups: dict[Key, Group] = {}
        self._lost: dict[str | None, int] = {}

    def again(self, key: Key) -> bool:
        """Count one more of a decision that is pending; False when it is not."""
        with self._lock:
            group = self._groups.get(key)
            if group is None:
                return False
            group.count += 1
            return True

    def add(self, key: Key, group: Group) -> None:
        """Keep one that was not pending when it was asked about."""
        with self._lock:
            known = self._groups.get(key)
            if known is not None:
                known.count += group.count
                known.at = min(known.at, group.at)
            elif len(self._groups) < self._capacity:
                self._groups[key] = group
            else:
                project_id = group.allowed.project_id
                self._lost[project_id] = self._lost.get(project_id, 0) + group.count

    def take(self) -> tuple[dict[Key, Group], dict[str | None, int]]:
        """All that is kept, and how many were lost by project; both are forgotten here."""
        with self._lock:
            groups, self._groups = self._groups, {}
            lost, self._lost = self._lost, {}
        return groups, lost

    def give_back(self, groups: dict[Key, Group], lost: dict[str | None, int]) -> None:
        """What could not be written joins what came meanwhile, as far as there is room."""
        with self._lock:
            for project_id, number in lost.items():
                self._lost[project_id] = self._lost.get(project_id, 0) + number
        for key, group in groups.items():
            self.add(key, group)


DECISIONS = Decisions()


def are_recorded() -> bool:
    """Whether what is allowed is recorded (`audit.decisions`)."""
    return config.current().audit.decisions == "all"


def entries(groups: dict[Key, Group]) -> Iterable[Entry]:
    for (actor, role, action, object_type, object_id, user_agent), group in groups.items():
        yield Entry(
            at=group.at,
            actor=actor,
            assumed_role=role or "",
            action=action,
            object_type=object_type,
            object_id=object_id,
            project_id=group.allowed.project_id,
            outcome="allowed",
            request_id=group.request_id,
            user_agent=user_agent,
            count=group.count,
            details={"privileges": list(group.allowed.privileges)},
        )
