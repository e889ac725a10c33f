"""Stores the counts of calls (in the background writer) and reads them (for `management.endpoint_statistics`)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from django.db import InterfaceError, OperationalError

from lakewarden.prepared_statements import execute, fetch
from lakewarden.usage.call_counter import COUNTS, Call, Counts

logger = logging.getLogger(__name__)

HOUR = timedelta(hours=1)
_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class CalledEndpoint:
    """The calls of one route in one hour; `until` is the end of that hour."""

    until: datetime
    http_route: str
    status_code: int
    warehouse_id: UUID | None
    warehouse_name: str | None
    count: int
    created_at: datetime
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters: hours that begin in [`start`, `end`); `warehouse` is an id, `all`, or `unmapped`: calls without one."""

    start: datetime
    end: datetime
    warehouse: UUID | Literal["all", "unmapped"] = "all"
    status_codes: Sequence[int] = ()


def flush(counts: Counts = COUNTS) -> None:
    """Add all counts to the database, in one statement.

    Raises django.db.Error; if the database is not reachable, the counts are kept for the next time.
    """
    taken, lost = counts.take()
    if lost:
        logger.warning("%s calls were not counted: there were too many kinds of them at once", lost)
    if not taken:
        return
    try:
        execute(_ADD, _columns(taken))
    except (OperationalError, InterfaceError):
        counts.give_back(taken)
        raise


def _columns(taken: dict[Call, int]) -> list[list[object]]:
    rows = [
        (call.project_id, call.hour * _SECONDS, call.route, call.status, call.warehouse_id, number)
        for call, number in taken.items()
    ]
    return [list(column) for column in zip(*rows, strict=True)]


# sorted, so two servers lock rows in the same order; the join drops the counts of deleted projects
_ADD = """
    insert into endpoint_calls (project_id, hour, route, status, warehouse_id, count, created_at)
    select c.project_id, to_timestamp(c.hour), c.route, c.status, c.warehouse_id, c.count, now()
    from unnest(%s::text[], %s::bigint[], %s::text[], %s::smallint[], %s::uuid[], %s::bigint[])
        as c(project_id, hour, route, status, warehouse_id, count)
    join project p on p.id = c.project_id
    order by 1, 2, 3, 4, 5
    on conflict (project_id, hour, route, status, warehouse_id)
    do update set count = endpoint_calls.count + excluded.count, updated_at = now()
"""


def hourly(project_id: str, wanted: Wanted) -> list[CalledEndpoint]:
    """The project's counts, sorted by hour, route, status and warehouse."""
    one = wanted.warehouse if isinstance(wanted.warehouse, UUID) else None
    parameters = {
        "project": project_id,
        "start": wanted.start,
        "end": wanted.end,
        "statuses": list(wanted.status_codes),
        "warehouse": one,
        "unmapped": wanted.warehouse == "unmapped",
    }
    return [CalledEndpoint(row[0] + HOUR, *row[1:]) for row in fetch(_HOURLY, parameters)]


_HOURLY = """
    select c.hour, c.route, c.status, c.warehouse_id, w.name, c.count, c.created_at, c.updated_at
    from endpoint_calls c left join warehouse w on w.id = c.warehouse_id and w.project_id = c.project_id
    where c.project_id = %(project)s and c.hour >= %(start)s and c.hour < %(end)s
      and (%(warehouse)s::uuid is null or c.warehouse_id = %(warehouse)s)
      and (not %(unmapped)s or c.warehouse_id is null)
      and (cardinality(%(statuses)s::int[]) = 0 or c.status = any(%(statuses)s::int[]))
    order by c.hour, c.route, c.status, w.name_key, c.warehouse_id
"""
