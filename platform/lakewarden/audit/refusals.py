"""Collects refused requests until the background writer's thread writes them, so no response waits for the audit."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final, Literal

from django.db import InterfaceError, OperationalError, transaction

from lakewarden import config
from lakewarden.audit import decision_buffer, losses
from lakewarden.audit.decision_buffer import DECISIONS, Decisions
from lakewarden.audit.entries import Entry, plain, write
from lakewarden.audit.losses import OVERFULL, Lost

ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Refusal:
    """`count` equal refusals, from `at` to `last_at`. Contains nothing secret.

    `asked` is the method and path (without query) of the first one, `source` the network that it came from.
    """

    outcome: Literal["denied", "unauthenticated"]
    actor: str
    action: str
    object_type: str
    object_id: str
    project_id: str | None
    reason: str
    request_id: str
    user_agent: str
    asked: str
    source: str = ""
    assumed_role: str = ""
    count: int = 1
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    last_at: datetime | None = None

    @property
    def key(self) -> tuple[str | None, ...]:
        """What equal refusals have in common; without valid credentials, only the network that they come from.

        The path of a request that names no existing object is not part of the key, because callers can choose it
        freely.
        """
        if self.outcome == "unauthenticated":
            return (self.source,)
        object_id = "" if self.object_type == "request" else self.object_id
        return (self.actor, self.assumed_role, self.action, self.object_type, object_id, self.project_id)

    def joined(self, other: "Refusal") -> "Refusal":
        first, second = sorted((self, other), key=lambda refusal: refusal.at)
        last_at = max(each.last_at or each.at for each in (self, other))
        return replace(first, count=self.count + other.count, last_at=max(last_at, second.at))


class Pending:
    """The refusals of all threads that are not written yet; bounded in total and for each caller. The rest is counted.

    Denied requests and requests without valid credentials have separate limits, so neither displaces the other.
    """

    def __init__(self, capacity: int | None = None, of_one_caller: int | None = None) -> None:
        self._capacity = capacity
        self._of_one_caller = of_one_caller
        self._lock = Lock()
        self._groups: dict[str, dict[tuple[str | None, ...], Refusal]] = {"denied": {}, "unauthenticated": {}}
        self._of: Counter[str] = Counter()
        self._lost: Lost = Counter()

    def add(self, refusal: Refusal) -> None:
        """Keep a refusal; equal ones are counted together."""
        limits = config.current().audit
        with self._lock:
            groups, key = self._groups[refusal.outcome], refusal.key
            known = groups.get(key)
            if known is not None:
                groups[key] = known.joined(refusal)
            elif len(groups) >= (self._capacity or limits.groups):
                self._lost[refusal.project_id, OVERFULL] += refusal.count
            elif self._of[refusal.actor] >= (self._of_one_caller or limits.refusals_of_one_caller):
                self._lost[refusal.project_id, refusal.actor] += refusal.count
            else:
                groups[key] = refusal
                if refusal.outcome == "denied":  # without valid credentials the actor is not known
                    self._of[refusal.actor] += 1

    def take(self, *, before: datetime | None = None) -> tuple[list[Refusal], Lost]:
        """Remove and return the refusals, oldest first, and how many were lost.

        `before`: only those that began before, unless half of the capacity is in use.
        """
        half = (self._capacity or config.current().audit.groups) // 2
        taken: list[Refusal] = []
        with self._lock:
            for outcome, groups in self._groups.items():
                border = None if len(groups) > half else before
                due = {key: each for key, each in groups.items() if border is None or each.at < border}
                self._groups[outcome] = {key: each for key, each in groups.items() if key not in due}
                taken += due.values()
            self._of = Counter(each.actor for each in self._groups["denied"].values())
            lost: Lost = Counter()
            if taken or before is None:
                lost, self._lost = self._lost, lost
        return sorted(taken, key=lambda refusal: refusal.at), lost

    def give_back(self, taken: list[Refusal], lost: Lost) -> None:
        """Keep what could not be written for the next time, as far as there is room."""
        self.lose(lost)
        for refusal in taken:
            self.add(refusal)

    def lose(self, lost: Lost) -> None:
        """Count refusals that will have no row."""
        with self._lock:
            self._lost.update(lost)


PENDING = Pending()


def flush_due() -> None:
    """Like `flush`, but refusals wait until their window (`audit.window_s`) is over, so equal ones become one entry."""
    flush(before=datetime.now(UTC) - timedelta(seconds=config.current().audit.window_s))


def flush(pending: Pending = PENDING, allowed: Decisions = DECISIONS, *, before: datetime | None = None) -> None:
    """Write pending refusals (see `Pending.take`) and allowed decisions in one transaction.

    Raises every error. If the database is not reachable, all is kept for the next time; what it refuses is counted as
    lost, because it would be refused again.
    """
    taken, lost = pending.take(before=before)
    groups, uncounted = allowed.take()
    try:
        entries = [
            *(_entry(refusal) for refusal in taken),
            *decision_buffer.entries(groups),
            *losses.entries(lost, "refusals"),
            *losses.entries(uncounted, "decisions"),
        ]
        if entries:
            with transaction.atomic():
                write(entries)
    except (OperationalError, InterfaceError):
        pending.give_back(taken, lost)
        allowed.give_back(groups, uncounted)
        raise
    except BaseException:
        pending.lose(lost + Counter({(None, OVERFULL): sum(refusal.count for refusal in taken)}))
        allowed.lose(uncounted + Counter({(None, OVERFULL): sum(group.count for group in groups.values())}))
        raise


def _entry(refusal: Refusal) -> Entry:
    details: dict[str, object] = {"asked": plain(refusal.asked)}
    if refusal.outcome == "unauthenticated":
        details |= {"source": refusal.source, "count": refusal.count}
    return Entry(
        at=refusal.at,
        last_at=refusal.last_at,
        actor=refusal.actor,
        assumed_role=refusal.assumed_role,
        action=refusal.action,
        object_type=refusal.object_type,
        object_id=refusal.object_id,
        project_id=refusal.project_id,
        outcome=refusal.outcome,
        reason=refusal.reason,
        request_id=refusal.request_id,
        user_agent=refusal.user_agent,
        count=refusal.count,
        details=details,
    )
