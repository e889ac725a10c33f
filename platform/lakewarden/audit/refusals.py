"""Remembers refused requests until the recorder's thread writes them: nobody waits for his refusal to be audited."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Final, Literal

from django.db import InterfaceError, OperationalError, transaction

from lakewarden.audit.models import AuditEntry
from lakewarden.context import SYSTEM

CAPACITY: Final = 10_000
ANONYMOUS: Final = "anonymous"
MAX_OBJECT: Final = 200  # characters
_MAX_REASON: Final = 500  # characters
_MAX_USER_AGENT: Final = 256  # bytes
_BATCH: Final = 500


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
    count: int = 1
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


class Pending:
    """What is not written yet, of all threads; bounded: what does not fit is counted, and the number written."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._refusals: list[Refusal] = []
        self._storms: dict[tuple[int, str], Refusal] = {}
        self._lost = 0

    def add(self, refusal: Refusal) -> None:
        """Keep one; those without valid credentials are one a second and source, with their number."""
        with self._lock:
            if refusal.outcome == "unauthenticated":
                key = int(refusal.at.timestamp()), refusal.source
                known = self._storms.get(key)
                if known is not None:
                    self._storms[key] = replace(known, count=known.count + refusal.count)
                    return
            if len(self._refusals) + len(self._storms) >= self._capacity:
                self._lost += refusal.count
            elif refusal.outcome == "unauthenticated":
                self._storms[key] = refusal
            else:
                self._refusals.append(refusal)

    def take(self) -> tuple[list[Refusal], int]:
        """All that is kept, oldest first, and how many were lost; both are forgotten here."""
        with self._lock:
            taken = sorted([*self._refusals, *self._storms.values()], key=lambda refusal: refusal.at)
            lost, self._lost = self._lost, 0
            self._refusals, self._storms = [], {}
        return taken, lost

    def give_back(self, taken: Sequence[Refusal], lost: int) -> None:
        """What could not be written is kept for the next time, as far as there is room."""
        with self._lock:
            self._lost += lost
        for refusal in taken:
            self.add(refusal)


PENDING = Pending()


def flush(pending: Pending = PENDING) -> None:
    """Write all that is pending in one transaction.

    Raises django.db.Error; when the database was away all is kept for the next time.
    """
    taken, lost = pending.take()
    if not taken and not lost:
        return
    rows = [_row(refusal) for refusal in taken] + ([_loss(lost)] if lost else [])
    try:
        with transaction.atomic():
            AuditEntry.objects.bulk_create(rows, batch_size=_BATCH)
    except (OperationalError, InterfaceError):
        pending.give_back(taken, lost)
        raise


def _row(refusal: Refusal) -> AuditEntry:
    details: dict[str, object] = {"asked": _plain(refusal.asked, MAX_OBJECT)}
    if refusal.outcome == "unauthenticated":
        details |= {"source": refusal.source, "count": refusal.count}
    return AuditEntry(
        at=refusal.at,
        actor=_plain(refusal.actor, MAX_OBJECT),
        action=refusal.action,
        object_type=refusal.object_type,
        object_id=_plain(refusal.object_id, MAX_OBJECT),
        project_id=refusal.project_id,
        outcome=refusal.outcome,
        reason=_plain(refusal.reason, _MAX_REASON),
        request_id=refusal.request_id,
        user_agent=_cut(_plain(refusal.user_agent, _MAX_USER_AGENT)),
        details=details,
    )


def _loss(lost: int) -> AuditEntry:
    reason = f"{lost} refusals came faster than they could be written; they are in no row"
    return AuditEntry(
        actor=SYSTEM,
        action="loseRefusals",
        object_type="server",
        object_id="server",
        outcome="lost",
        reason=reason,
        details={"count": lost},
    )


def _plain(text: str, most: int) -> str:
    """The first characters of a text that anybody may have sent, without what the database cannot hold."""
    return text[:most].replace("\x00", "").encode("utf-8", "replace").decode()


def _cut(text: str) -> str:
    return text.encode()[:_MAX_USER_AGENT].decode(errors="ignore")
