"""What happens in a warehouse: calls by hour, objects, change data with its buffers, and maintenance."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from django.http import HttpResponse

from catalog.services import warehouse_statistics
from console import drawings
from console.pages.browse import crumbs
from console.visits import Visit, page
from ingest.services import maintenance_runs, standing
from lakewarden.authz.actions import WarehouseAction
from lakewarden.paging import Page
from lakewarden.usage import call_statistics
from lakewarden.usage.call_statistics import CalledEndpoint, Wanted
from tenants import access

HOURS: Final = 48
SHOWN: Final = 20
_ERROR: Final = 400


@page
def activity(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """For whoever may read the warehouse's statistics; the gateway shows the sources to them, too."""
    granted = access.warehouse(visit.context, warehouse_id, WarehouseAction.GET_ENDPOINT_STATISTICS)
    may_see_tasks = granted.allows(WarehouseAction.GET_ALL_TASKS)
    ingest = standing.of(granted, sources=SHOWN)
    if visit.is_partial:
        return visit.part("parts/ingest.html", ingest=ingest)
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    calls = call_statistics.hourly(granted.target.project_id, Wanted(end - timedelta(hours=HOURS), end, warehouse_id))
    hours, _ = warehouse_statistics.newest_first(granted, Page(None, HOURS))
    routes: Counter[str] = Counter()
    for each in calls:
        routes[each.http_route] += each.count
    return visit.render(
        "activity.html",
        section="warehouses",
        warehouse=granted.target,
        crumbs=crumbs(granted.target),
        charts=[_calls("Calls", calls, end), _calls("Refused or failed", _failed(calls), end)],
        routes=routes.most_common(SHOWN),
        newest=hours[0] if hours else None,
        ingest=ingest,
        runs=maintenance_runs.newest_first(granted, Page(None, SHOWN))[0] if may_see_tasks else [],
        may_see_tasks=may_see_tasks,
    )


def _failed(calls: list[CalledEndpoint]) -> list[CalledEndpoint]:
    return [each for each in calls if each.status_code >= _ERROR]


def _calls(title: str, calls: list[CalledEndpoint], end: datetime) -> drawings.Chart | None:
    counts: Counter[datetime] = Counter()
    for each in calls:
        counts[each.until] += each.count
    ends = [end - timedelta(hours=back) for back in reversed(range(HOURS))]
    points = [(at.timestamp(), float(counts[at]), f"until {at:%Y-%m-%d %H:%M} UTC: {counts[at]:,}") for at in ends]
    most = max(counts.values(), default=0)
    first, last = f"{ends[0]:%Y-%m-%d %H:%M}", f"{ends[-1]:%Y-%m-%d %H:%M}"
    return drawings.chart(title, points, top=f"{most:,} in an hour", first=first, last=last)
