"""Reads the audit, newest first, in pages; for `management.audit`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import Max, Q, QuerySet

from lakewarden.audit.models import AuditEntry
from lakewarden.errors import BadRequest
from lakewarden.paging import Page


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters. `equal` maps columns to values; `start` is inclusive, `end` is exclusive."""

    equal: Mapping[str, str] = field(default_factory=dict)
    start: datetime | None = None
    end: datetime | None = None


def of_project(project_id: str, wanted: Wanted, page: Page) -> tuple[list[AuditEntry], str | None]:
    """A page of a project's entries, and the key of the next page. Raises BadRequest for an invalid key.

    Entries of an earlier, deleted project with the same id are not shown.
    """
    found = AuditEntry.objects.filter(project_id=project_id)
    made = AuditEntry.objects.filter(
        object_id=project_id, object_type="project", action="createProject", outcome="done"
    ).aggregate(at=Max("at"))
    if made["at"] is not None:
        found = found.filter(at__gte=made["at"])
    return _page(found, wanted, page)


def of_server(wanted: Wanted, page: Page, *, only_its_own: bool) -> tuple[list[AuditEntry], str | None]:
    """Like `of_project`, for all entries of the server; `only_its_own`: only those that belong to no project."""
    found = AuditEntry.objects.filter(project_id=None) if only_its_own else AuditEntry.objects.all()
    return _page(found, wanted, page)


def _page(found: QuerySet[AuditEntry], wanted: Wanted, page: Page) -> tuple[list[AuditEntry], str | None]:
    found = found.filter(**wanted.equal)
    if wanted.start is not None:
        found = found.filter(at__gte=wanted.start)
    if wanted.end is not None:
        found = found.filter(at__lt=wanted.end)
    if page.after is not None:
        at, number = _place(page.after)
        # the second condition implies the first, but PostgreSQL selects partitions and indexes only by the first
        found = found.filter(at__lte=at).filter(Q(at__lt=at) | Q(id__lt=number))
    entries = list(found.order_by("-at", "-id")[: page.limit])
    return page.cut([(entry, f"{entry.at.isoformat()} {entry.id}") for entry in entries])


def _place(key: str) -> tuple[datetime, int]:
    at, _, number = key.partition(" ")
    try:
        place = datetime.fromisoformat(at).astimezone(UTC), int(number)
    except (ValueError, OverflowError):
        raise BadRequest("Invalid pageToken: it was not issued for this list") from None
    if not 0 <= place[1] < 2**63:
        raise BadRequest("Invalid pageToken: it was not issued for this list")
    return place
