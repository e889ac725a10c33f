"""How many tables, views and generic tables a warehouse has, by hour; the row of the current hour is updated."""

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from catalog.models import WarehouseStatistics
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest
from lakewarden.paging import Page
from lakewarden.prepared_statements import execute
from tenants.models import Warehouse
from tenants.models.warehouse import PLACES

DEFAULT_PAGE_SIZE = 100
HOUR = timedelta(hours=1)
FRESH = timedelta(minutes=1)
"""How long the current hour's numbers are not counted again: counting a million tables takes a part of a second."""
_BATCH = 10_000


def newest_first(granted: Granted[Warehouse], page: Page) -> tuple[list[WarehouseStatistics], str | None]:
    """A page of the hours, the current one first, and the key behind which the next page starts."""
    warehouse = granted.target
    rows = WarehouseStatistics.objects.filter(warehouse=warehouse).order_by("-timestamp")
    if page.after is None:
        _refresh(warehouse)
    else:
        rows = rows.filter(timestamp__lt=_position(page.after))
    size = page.size or DEFAULT_PAGE_SIZE
    found = list(rows[: size + 1])
    return found[:size], found[size - 1].timestamp.isoformat() if len(found) > size else None


def keep_hour(now: datetime) -> None:
    """Count every warehouse for the hour that `now` is in."""
    execute(_COUNT_ALL, {"hour": end_of_hour(now)})


def forget_expired(*, older_than: timedelta) -> int:
    """Remove the hours that are older; returns how many were removed."""
    border = timezone.now() - older_than
    removed = 0
    while True:
        expired = WarehouseStatistics.objects.filter(timestamp__lt=border).values_list("id", flat=True)[:_BATCH]
        gone, _ = WarehouseStatistics.objects.filter(id__in=list(expired)).delete()
        removed += gone
        if gone < _BATCH:
            return removed


def end_of_hour(moment: datetime) -> datetime:
    """The first moment after the hour (UTC) that `moment` is in."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + HOUR


def _refresh(warehouse: Warehouse) -> None:
    """Count again, unless any process has counted within the last minute."""
    now = timezone.now()
    hour = end_of_hour(now)
    fresh = WarehouseStatistics.objects.filter(warehouse=warehouse, timestamp=hour, updated_at__gt=now - FRESH)
    if not fresh.exists():
        execute(_COUNT_ONE, {"hour": hour, "warehouse": warehouse.id})


def _position(key: str) -> datetime:
    try:
        position = datetime.fromisoformat(key)
    except ValueError:
        position = None
    if position is None or position.tzinfo is None:
        raise BadRequest("Invalid page token: it was not issued for a list of statistics")
    return position


# dropped tables that can be restored do not count; the lock prevents the deletion of the warehouse
_COUNT = """
    insert into warehouse_statistics
        (warehouse_id, timestamp, number_of_tables, number_of_views, number_of_generic_tables, updated_at)
    select w.id, %(hour)s,
           count(t.id) filter (where t.kind = 'table'), count(t.id) filter (where t.kind = 'view'),
           count(t.id) filter (where t.kind = 'generic-table'), now()
    from ({warehouses} for key share) w
    left join tabular t on t.warehouse_id = w.id and t.deleted_at is null
    group by w.id
    on conflict (warehouse_id, timestamp) do update
    set number_of_tables = excluded.number_of_tables, number_of_views = excluded.number_of_views,
        number_of_generic_tables = excluded.number_of_generic_tables, updated_at = now()
"""
_COUNT_ALL = _COUNT.format(warehouses=PLACES)
_COUNT_ONE = _COUNT.format(warehouses=f"{PLACES} where id = %(warehouse)s")
