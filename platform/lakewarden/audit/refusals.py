"""Remembers refused requests until the recorder's thread writes them: nobody waits for his refusal to be audited."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Final, Literal

from django.db import InterfaceError, OperationalError, transaction

from lakewarden.audit import decisions
from lakewarden.audit.decisions import DECISIONS, Decisions
from lakewarden.audit.entries import Entry, plain, write
from lakewarden.context import SYSTEM

CAPACITY: Final = 10_000
ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One request that was refused, or (`count`) many of one `source` within a second. Holds nothing secret.

    `asked` is the request's method and path without its query.
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


class Pending:
    """What is not written yet, of all threads; bounded: what does not fit is counted for its project.

    Denied requests and those without valid credentials have room of their own: neither displaces the other.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._refusals: list[Refusal] = []
        self._storms: dict[tuple[int, str], Refusal] = {}
        self._lost: dict[str | None, int] = {}

    def add(self, refusal: Refusal) -> None:
        """Keep one; those without valid credentials are one a second and source, with their number."""
        with self._lock:
            if refusal.outcome == "denied":
                if len(self._refusals) < self._capacity:
                    self._refusals.append(refusal)
                    return
            else:
                key = int(refusal.at.timestamp()), refusal.source
                known = self._storms.get(key)
                if known is not None or len(self._storms) < self._capacity:
                    count = refusal.count + (known.count if known else 0)
                    self._storms[key] = replace(known or refusal, count=count)
                    return
            self._lost[refusal.project_id] = self._lost.get(refusal.project_id, 0) + refusal.count

    def take(self) -> tuple[list[Refusal], dict[str | None, int]]:
        """All that is kept, oldest first, and how many were lost by project; both are forgotten here."""
        with self._lock:
            taken = sorted([*self._refusals, *self._storms.values()], key=lambda refusal: refusal.at)
            lost, self._lost = self._lost, {}
            self._refusals, self._storms = [], {}
        return taken, lost

    def give_back(self, taken: Sequence[Refusal], lost: dict[str | None, int]) -> None:
        """What could not be written is kept for the next time, as far as there is room."""
        with self._lock:
            for project_id, number in lost.items():
                self._lost[project_id] = self._lost.get(project_id, 0) + number
        for refusal in taken:
            self.add(refusal)


PENDING = Pending()


def flush(pending: Pending = PENDING, allowed: Decisions = DECISIONS) -> None:
    """Write all that is pending, refusals and what was allowed, in one transaction.

    Raises django.db.Error; when the database was away all is kept for the next time.
    """
    taken, lost = pending.take()
    groups, uncounted = allowed.take()
    entries = [
        *(_entry(refusal) for refusal in taken),
        *decisions.entries(groups),
        *_losses(lost, "refusals"),
        *_losses(uncounted, "decisions"),
    ]
    if not entries:
        return
    try:
        with transaction.atomic():
            write(entries)
    except (OperationalError, InterfaceError):
        pending.give_back(taken, lost)
        allowed.give_back(groups, uncounted)
        raise


def _entry(refusal: Refusal) -> Entry:
    details: dict[str, object] = {"asked": plain(refusal.asked)}
    if refusal.outcome == "unauthenticated":
        details |= {"source": refusal.source, "count": refusal.count}
    return Entry(
        at=refusal.at,
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


def _losses(lost: dict[str | None, int], what: str) -> Iterable[Entry]:
    """A row for each project of which something was lost."""
    for project_id, number in lost.items():
        yield Entry(
            at=datetime.now(UTC),
            actor=SYSTEM,
            action=f"lose{what.capitalize()}",
            object_type="project" if project_id else "server",
            object_id=project_id or "server",
            project_id=project_id,
            outcome="lost",
            reason=f"{number} {what} came faster than they could be written; they are in no row",
            count=number,
            details={"count": number},
        )
