"""The queues that the management API shows, and the settings of each."""

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
"""Seconds. A worker sends a heartbeat every 10 seconds and counts as dead after 30, so less would have no effect."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: a whole number from `least` to `most`."""

    least: int
    most: int
    default: int


@dataclass(frozen=True, slots=True)
class Queue:
    """`level` says whether settings belong to each warehouse or to the project; `cancelled` is a cancelled task's
    message.
    """

    name: str
    level: Level
    settings: Mapping[str, Setting]
    cancelled: str = CANCELLED

    def check(self, given: Mapping[str, Any]) -> dict[str, int]:
        """Returns `given` if all of it is valid. Raises BadRequest, which names the first invalid setting."""
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
    # at most 16 attempts: the pauses double each time, so the last one starts after 18 hours
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
    """The current name of a queue, for a name that older clients may use."""
    return _OLD_NAMES.get(name, name)


def cancelled(name: str) -> str:
    """The message of a cancelled task of the queue."""
    return QUEUES[name].cancelled if name in QUEUES else CANCELLED


def find(name: str, level: Level) -> Queue:
    """The queue with this name. Raises NotFound if it does not exist or belongs to the other level."""
    queue = QUEUES.get(present_name(name))
    if queue is None or queue.level != level:
        known = ", ".join(sorted(each.name for each in _ALL if each.level == level))
        raise NotFound(f"Task queue does not exist: {name} is not a queue of a {level}; known are {known}")
    return queue
