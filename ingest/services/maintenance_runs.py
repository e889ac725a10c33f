"""What maintenance did to the tables of a warehouse; `pipeline.maintenance` writes it."""

from datetime import datetime
from uuid import UUID

from django.db.models import Q

from ingest.models import IngestMaintenanceRun
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest
from lakewarden.paging import Page
from tenants.models import Warehouse


def newest_first(
    granted: Granted[Warehouse], page: Page, *, table: str | None = None
) -> tuple[list[IngestMaintenanceRun], str | None]:
    """A page of the history, of one table if it is given, and the key of the next page."""
    found = IngestMaintenanceRun.objects.filter(warehouse=granted.target).order_by("-ended_at", "-id")
    if table is not None:
        found = found.filter(table_name=table)
    if page.after is not None:
        ended_at, identifier = _position(page.after)
        found = found.filter(Q(ended_at__lt=ended_at) | Q(ended_at=ended_at, id__lt=identifier))
    return page.cut([(run, f"{run.ended_at.isoformat()} {run.id}") for run in found[: page.limit]])


def _position(key: str) -> tuple[datetime, UUID]:
    moment, _, identifier = key.partition(" ")
    try:
        ended_at, found = datetime.fromisoformat(moment), UUID(identifier)
    except ValueError:
        raise BadRequest("Invalid page token: it was not issued for a list of maintenance runs") from None
    if ended_at.tzinfo is None:
        raise BadRequest("Invalid page token: it was not issued for a list of maintenance runs")
    return ended_at, found
