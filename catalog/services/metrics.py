"""Keeps the scan and commit reports that engines send, finds them again, and forgets the old ones."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from catalog.iceberg import wire
from catalog.models import MetricsReport, Tabular
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest, PayloadTooLarge
from lakewarden.paging import Page
from lakewarden.retention import forget
from lakewarden.usage.budgets import spend

DEFAULT_PAGE_SIZE = 100
TYPES = ("scan-report", "commit-report")
_ROW = 200  # bytes that a row needs besides the report itself
_BUDGET = "metrics-reports"


def keep(granted: Granted[Tabular], report_type: str, body: bytes) -> None:
    """Store one report unchanged, unless the caller's or the warehouse's budget of the day is used up.

    Raises PayloadTooLarge, and BadRequest for a body that is not a report, or that the database cannot store.
    """
    limits = config.current().catalog
    if len(body) > limits.metrics_report_bytes:
        raise PayloadTooLarge(
            f"The metrics report has {len(body)} bytes: at most {limits.metrics_report_bytes} are allowed "
            "(catalog.metrics_report_bytes)"
        )
    if report_type not in TYPES:
        raise BadRequest(f"Invalid report-type {report_type[:80]!r}: {' or '.join(TYPES)} is expected")
    wire.check_text(body, "Invalid metrics report: it")
    if b"\\u0000" in body:
        raise BadRequest("Invalid metrics report: the character U+0000 cannot be stored")
    report, actor, cost = wire.value(body, "Invalid metrics report: it"), granted.context.caller.id, len(body) + _ROW
    warehouse = str(granted.target.warehouse_id)
    # the caller's own budget first: reports beyond it do not use up the budget of all callers
    for spender, limit in (
        (f"{warehouse} {actor}", limits.metrics_bytes_of_one_caller),
        (warehouse, limits.metrics_bytes_of_warehouse),
    ):
        if not spend(_BUDGET, spender, amount=cost, limit=limit, period="day"):
            return
    MetricsReport.objects.create(tabular=granted.target, actor=actor, report_type=report_type, report=report)


def newest_first(
    granted: Granted[Tabular], page: Page, *, report_type: str | None
) -> tuple[list[MetricsReport], str | None]:
    """A page of a table's reports, of one type if given, and the key behind which the next page starts."""
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
        raise BadRequest("Invalid pageToken: it was not issued for a list of metrics reports")
    return position


def forget_expired(*, older_than: timedelta) -> int:
    """Remove the reports that are older, in the order of their arrival; returns how many were removed."""
    return forget(
        "metrics_report",
        first="id",
        expired="received_at < %(border)s",
        parameters={"border": timezone.now() - older_than},
    )
