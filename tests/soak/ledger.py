"""Records requests and answers, and decides which reads are correct.

All times are monotonic seconds. A write is acknowledged, refused (nothing was applied) or unknown. A read must show
all that was acknowledged before it began, may show what was under way or unknown, and nothing else. What a read has
shown stays: every later read must show it too.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

KEPT_EVENTS = 12


class Outcome(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    LOST = "lost"
    DOUBLED = "doubled"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer that must not have been; `history` are the last events of the object, oldest first."""

    verdict: Verdict
    what: str
    at: float
    history: Sequence[dict[str, Any]] = ()


@dataclass(slots=True)
class Write:
    """`seen` is the end of the first read that showed it."""

    value: Hashable
    sent: float
    outcome: Outcome = Outcome.OPEN
    ended: float | None = None
    seen: float | None = None
    request_id: str = ""
    was_unknown: bool = False

    @property
    def certain_at(self) -> float | None:
        """From when on every read must show it; None: not yet, or never."""
        acknowledged = self.ended if self.outcome is Outcome.ACKNOWLEDGED else None
        times = [each for each in (acknowledged, self.seen) if each is not None]
        return min(times) if times else None

    @property
    def may_be_applied(self) -> bool:
        return self.outcome is not Outcome.REFUSED

    def end(self, outcome: Outcome, at: float) -> None:
        self.outcome, self.ended = outcome, at


@dataclass(slots=True)
class _Object:
    """`unknown` counts the writes of unknown outcome, `applied` those of them that were seen to be applied."""

    name: str
    writes: list[Write]

    def history(self) -> list[dict[str, Any]]:
        return [{**asdict(each), "value": str(each.value)} for each in self.writes[-KEPT_EVENTS:]]

    def finding(self, verdict: Verdict, what: str, at: float) -> Finding:
        return Finding(verdict, f"{self.name}: {what}", at, self.history())


View = Callable[[Any], Hashable]
"""What a read shows of a value."""


def _whole(value: Hashable) -> Hashable:
    return value


class Register(_Object):
    """An object that one client changes, one write after the other, and everybody reads."""

    def __init__(self, name: str, initial: Hashable) -> None:
        super().__init__(name, [Write(initial, 0.0, Outcome.ACKNOWLEDGED, 0.0)])

    @property
    def is_certain(self) -> bool:
        """Whether it has one value for sure, so that the next write may be sent."""
        return self.writes[-1].outcome in {Outcome.ACKNOWLEDGED, Outcome.REFUSED}

    @property
    def value(self) -> Hashable:
        """The newest that was not refused."""
        return next(each.value for each in reversed(self.writes) if each.may_be_applied)

    def send(self, value: Hashable, at: float, request_id: str = "") -> Write:
        assert self.is_certain, f"{self.name}: the write before is not over"
        self.writes.append(Write(value, at, request_id=request_id))
        return self.writes[-1]

    def allowed(self, start: float, end: float) -> list[Write]:
        """The writes whose value a read from `start` to `end` may show."""
        base = self._base(start)
        return [
            self.writes[base],
            *(each for each in self.writes[base + 1 :] if each.may_be_applied and each.sent <= end),
        ]

    def read(self, observed: Hashable, start: float, end: float, view: View = _whole) -> Finding | None:
        """Judge a read that showed `observed` of the value, as `view` sees it, and learn from it."""
        allowed = self.allowed(start, end)
        shown = [each for each in allowed if view(each.value) == observed]
        if len(shown) == 1:
            shown[0].seen = end if shown[0].seen is None else min(shown[0].seen, end)
        if shown:
            return None
        before = self.writes[: self._base(start)]
        is_old = any(view(each.value) == observed and each.may_be_applied for each in before)
        expected = " or ".join(str(view(each.value)) for each in allowed)
        what = f"a read showed {observed}, and {expected} was to be shown"
        return self.finding(Verdict.LOST if is_old else Verdict.WRONG, what, end)

    def settle(self, at: float) -> None:
        """End a write of unknown outcome, when nothing was under way any more and reads have shown what there is."""
        last = self.writes[-1]
        if last.outcome is Outcome.UNKNOWN:
            last.was_unknown = True
            last.end(Outcome.ACKNOWLEDGED if last.seen is not None else Outcome.REFUSED, at)

    def _base(self, start: float) -> int:
        certain = [number for number, each in enumerate(self.writes) if _is_before(each, start)]
        return certain[-1]


class GrowingSet(_Object):
    """Elements that many clients add at once, each element once, and nobody takes away."""

    def __init__(self, name: str) -> None:
        super().__init__(name, [])
        self._by_value: dict[Hashable, Write] = {}

    def send(self, value: Hashable, at: float, request_id: str = "") -> Write:
        assert value not in self._by_value, f"{value} was sent before"
        write = self._by_value[value] = Write(value, at, request_id=request_id)
        self.writes.append(write)
        return write

    def read(self, observed: Sequence[Hashable], start: float, end: float) -> list[Finding]:
        """Judge a read of all elements, and learn from it."""
        shown = set(observed)
        findings = [
            self._finding(Verdict.DOUBLED, value, "is there more than once", end)
            for value, times in Counter(observed).items()
            if times > 1
        ]
        findings += [
            self._finding(Verdict.LOST, write.value, "is not there, and was acknowledged or seen", end)
            for write in self.writes
            if write.value not in shown and _is_before(write, start)
        ]
        for value in shown:
            known = self._by_value.get(value)
            if known is None or known.sent > end:
                findings.append(self._finding(Verdict.WRONG, value, "is there, and nobody has asked for it", end))
            elif known.outcome is Outcome.REFUSED:
                findings.append(self._finding(Verdict.WRONG, value, "is there, and was refused", end))
            else:
                known.seen = end if known.seen is None else min(known.seen, end)
        return findings

    def has_seen(self, value: Hashable) -> bool:
        """Whether a read has shown it."""
        return self._by_value[value].seen is not None

    def missing(self, at: float) -> Finding:
        """The whole object was not there."""
        return self.finding(Verdict.LOST, "is not there at all", at)

    def _finding(self, verdict: Verdict, value: Hashable, what: str, at: float) -> Finding:
        known = self._by_value.get(value)
        history = [] if known is None else [{**asdict(known), "value": str(value)}]
        return Finding(verdict, f"{self.name}: {value} {what}", at, history)


def _is_before(write: Write, start: float) -> bool:
    return write.certain_at is not None and write.certain_at < start


@dataclass(slots=True)
class Requests:
    """Every change by the id of its request: what was recorded of it must agree with its answer."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def judge(self, recorded: dict[str, int], most: dict[str, int], at: float) -> list[Finding]:
        """`recorded` are how many changes were recorded of a request id, `most` how many it asked for (1 if not told)."""
        findings = []
        for request_id, outcome in self.outcomes.items():
            found, asked = recorded.get(request_id, 0), most.get(request_id, 1)
            told = {"request-id": request_id, "outcome": str(outcome), "recorded": found, "asked": asked}
            if outcome is Outcome.ACKNOWLEDGED and found < asked:
                findings.append(
                    Finding(Verdict.LOST, f"{request_id} was acknowledged, and is not recorded", at, [told])
                )
            if outcome is Outcome.REFUSED and found:
                findings.append(Finding(Verdict.WRONG, f"{request_id} was refused, and is recorded", at, [told]))
            if found > asked:
                findings.append(Finding(Verdict.DOUBLED, f"{request_id} is recorded {found} times", at, [told]))
        return findings
