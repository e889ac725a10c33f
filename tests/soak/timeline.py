"""When which fault was in the system: every checked operation belongs to the faults that it met, or to the quiet."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic

QUIET = "quiet"
GRACE_S = 0.5
"""An operation that ends so soon before a fault is called quiet still; one that begins so soon after it is not."""

SETTLED_S = 1.0


@dataclass
class Fault:
    """`lifted` is when what was broken was whole again, `recovered` when both replicas answered correctly.

    `worker_s` is how long it then took until a worker worked, `ended` when all of this was known.
    """

    kind: str
    number: int
    began: float
    lifted: float | None = None
    recovered: float | None = None
    worker_s: float | None = None
    ended: float | None = None

    @property
    def recovery_s(self) -> float | None:
        return None if self.lifted is None or self.recovered is None else self.recovered - self.lifted

    def meets(self, start: float, end: float) -> bool:
        return self.began <= end and (self.ended is None or start <= self.ended + GRACE_S)


@dataclass
class Timeline:
    """Append-only; written by the thread that makes the faults, read by the clients."""

    faults: list[Fault] = field(default_factory=list)

    def begin(self, kind: str) -> Fault:
        fault = Fault(kind, len(self.faults) + 1, monotonic())
        self.faults.append(fault)
        return fault

    def kind(self, start: float, end: float) -> str:
        """Of the fault that an operation met, the newest if there were several; QUIET for none."""
        return next((each.kind for each in reversed(self.faults[-8:]) if each.meets(start, end)), QUIET)

    def is_settled(self, now: float) -> bool:
        """Whether the last fault is so long over that nothing sent during it is still under way."""
        return not self.faults or (self.faults[-1].ended or now) + SETTLED_S < now


def median(values: Iterable[float]) -> float | None:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None
