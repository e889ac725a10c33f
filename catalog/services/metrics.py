"""Keeps the scan and commit reports that engines send, finds them again, and forgets the old ones."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from catalog.iceberg import wire
from catalog.models import MetricsReport, Tabular
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest, NoSuchTable
from lakewarden.paging import Page
from tenants.models import Warehouse

DEFAULT_PAGE_SIZE = 100
_BATCH = 1000


def keep(granted: Granted[Tabular], report_type: str, body: bytes) -> None:
    """Store one report as it came; raises BadRequest for what the database cannot keep."""
    wire.check_text(body, "Invalid metrics report: it")
    if b"\\u0000" in body:
        raise BadRequest("Invalid metrics report: the character U+0000 cannot be kept")
    MetricsReport.objects.create(
        tabular=granted.target,
        actor=granted.context.actor.id,
        report_type=report_type,
        report=wire.value(body, "Invalid metrics report: it"),
    )


def table_id(warehouse: Granted[Warehouse], name: str) -> UUID:
    """The id of the table that `name` means: its own id, or the `table-uuid` of its metadata.

    They differ for registered tables. Raises NoSuchTable when there is none, BadRequest when several have the UUID.
    """
    missing = NoSuchTable(f"Table does not exist: {name}")
    try:
        asked = UUID(name)
    except ValueError:
        raise missing from None
    tables = Tabular.objects.live().filter(warehouse=warehouse.target, kind=Tabular.Kind.TABLE)
    found: list[UUID] = list(tables.filter(Q(id=asked) | Q(uuid=asked)).values_list("id", flat=True))
    if not found:
        raise missing
    if len(found) > 1 and asked not in found:
        raise BadRequest(f"{len(found)} tables have the table-uuid {name}: name one by its id in the catalog")
    return asked if asked in found else found[0]


def newest_first(
    granted: Granted[Tabular], page: Page, *, report_type: str | None
) -> tuple[list[MetricsReport], str | None]:
    """A page of a table's reports, of one type where asked, and the key behind which the next page starts."""
    rows = MetricsReport.objects.filter(tabular=granted.target).order_by("-received_at", "-id")
    if report_type is not None:
        rows = rows.filter(report_type=report_type)
    if page.after is not None:
        at, identifier = _position(page.after)
        rows = rows.filter(received_at__lte=at).filter(Q(received_at__lt=at) | Q(id__lt=identifier))
    size = page.size or DEFAULT_PAGE_SIZE
    found = list(rows[: size + 1])
    shown = found[:size]
    more = len(found) > size
    return shown, f"{shown[-1].received_at.isoformat()} {shown[-1].pk}" if more else None


def _position(key: str) -> tuple[datetime, int]:
    at, _, identifier = key.partition(" ")
    try:
        position = datetime.fromisoformat(at), int(identifier)
    except ValueError:
        position = None
    if position is None or position[0].tzinfo is None:
        raise BadRequest("Invalid pageToken: it is not of a list of metrics reports")
    return position


def forget_expired(*, older_than: timedelta) -> int:
    """Remove the reports that are older, in the order of their arrival; returns how many went."""
    border = timezone.now() - older_than
    removed = 0
    while True:
        oldest = list(MetricsReport.objects.order_by("id").values_list("id", "received_at")[:_BATCH])
        expired = [identifier for identifier, received_at in oldest if received_at < border]
        MetricsReport.objects.filter(id__in=expired).delete()
        removed += len(expired)
        if len(expired) < _BATCH:
            return removed
