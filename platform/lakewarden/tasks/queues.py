"""The queues that the management API knows, and what can be set for each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lakewarden.errors import BadRequest, NotFound

Level = Literal["warehouse", "project"]

PURGE = "tabular_purge"
SOFT_DELETION = "soft_deletion"
CLEANUP = "task_log_cleanup"

CANCELLED = "Cancelled on request"

LEAST_SILENCE_S, MOST_SILENCE_S = 30, 86_400
"""A worker says every ten seconds that it lives, and counts as dead after thirty."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A whole number from `least` to `most`."""

    least: int
    most: int
    default: int


@dataclass(frozen=True, slots=True)
class Queue:
    """`level` says whose setting counts: each warehouse's own, or the project's; `cancelled` is what is told then."""

    name: str
    level: Level
    settings: Mapping[str, Setting]
    cancelled: str = CANCELLED

    def check(self, given: Mapping[str, Any]) -> dict[str, int]:
        """`given`, when each of it can be set so. Raises BadRequest that names the first wrong one."""
        for name, value in given.items():
            known = self.settings.get(name)
            if known is None:
                raise BadRequest(
                    f"queue-config: {name!r} cannot be set for the queue {self.name}: known are "
                    f"{', '.join(sorted(self.settings))}"
                )
            if not isinstance(value, int) or isinstance(value, bool) or not known.least <= value <= known.most:
                raise BadRequest(
                    f"queue-config: {name} is {value!r}: a whole number from {known.least} to {known.most} is expected"
                )
        return dict(given)


_ALL = (
    # the pauses between attempts double each time: the last of sixteen comes after eighteen hours
    Queue(
        PURGE,
        "warehouse",
        {
            "max-attempts": Setting(least=1, most=16, default=16),
            "deletions-at-once": Setting(least=1, most=64, default=4),
        },
        cancelled="Cancelled on request: files that were not removed by then stay",
    ),
    Queue(
        SOFT_DELETION,
        "warehouse",
        {"max-attempts": Setting(least=1, most=16, default=16)},
        cancelled="Cancelled on request: the objects that it would have removed are restored",
    ),
    Queue(CLEANUP, "project", {"retention-days": Setting(least=1, most=36_500, default=90)}),
)
QUEUES = {queue.name: queue for queue in _ALL}
_OLD_NAMES = {"tabular_expiration": SOFT_DELETION}


def present_name(name: str) -> str:
    """The name that a queue has today, for one that older clients know by another."""
    return _OLD_NAMES.get(name, name)


def cancelled(name: str) -> str:
    """What a task of the queue says when it was cancelled."""
    return QUEUES[name].cancelled if name in QUEUES else CANCELLED


def find(name: str, level: Level) -> Queue:
    """Raises NotFound for a queue that is not known, or not of the level."""
    queue = QUEUES.get(present_name(name))
    if queue is None or queue.level != level:
        known = ", ".join(sorted(each.name for each in _ALL if each.level == level))
        raise NotFound(f"Task queue does not exist: {name} is not a queue of a {level}; known are {known}")
    return queue
