"""The log of events: all of them in one order, in which readers follow them by their positions.

The outbox cannot be read by its sequence: transactions take numbers when they write and become visible when they
commit, so a reader would step over events that commit late. Therefore one process at a time moves what is visible to
the log and numbers it anew. Events of one object keep their order: a change waits for the row that the one before has
locked, so it is visible, and numbered, only after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from lakewarden.postgres.daily_partitions import DailyPartitions
from lakewarden.prepared_statements import fetch

BATCH: Final = 1000
PARTITIONS: Final = DailyPartitions(
    "event_log",
    columns=(
        "position, at, id, type, project_id, object_type, object_id, actor, assumed_role, request_id, data, created_at"
    ),
    lock=0x6C6B6570,
)
_LOCK: Final = 0x6C6B6576  # advisory lock: one process at a time numbers events


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the log; `time` is that of the change."""

    position: int
    id: UUID
    type: str
    project_id: str | None
    object_type: str
    object_id: str
    actor: str
    assumed_role: str
    request_id: str
    data: dict[str, Any]
    time: datetime


def append_new(limit: int = BATCH) -> int:
    """Move the oldest events of the outbox to the log; returns how many, 0 if another process is doing so."""
    with transaction.atomic():
        ((is_mine,),) = fetch("select pg_try_advisory_xact_lock(%s)", [_LOCK])
        if not is_mine:
            return 0
        ((moved,),) = fetch(_MOVE, [limit])
    return int(moved)


def look() -> tuple[bool, int]:
    """Whether the outbox has events, and the last position of the log; one cheap statement."""
    ((has_new, end),) = fetch(_LOOK, [])
    return bool(has_new), int(end)


def read(
    *,
    after: int,
    limit: int,
    up_to: int = 2**62,
    types: Sequence[str] = (),
    projects: Sequence[str] = (),
    object_type: str = "",
    object_id: str = "",
) -> list[Event]:
    """The next events after a position, up to and including another; empty filters: all."""
    chosen = [list(types), list(types), list(projects), list(projects), object_type, object_type, object_id, object_id]
    return [Event(*row) for row in fetch(_READ, [after, up_to, *chosen, limit])]


def first_position() -> int:
    """0 for a log without events."""
    ((position,),) = fetch("select coalesce(min(position), 0) from event_log", [])
    return int(position)


def last_position() -> int:
    ((position,),) = fetch("select coalesce(max(position), 0) from event_log", [])
    return int(position)


def position_before(time: datetime) -> int:
    """The last position that was logged before a time."""
    ((position,),) = fetch(_BEFORE, [time])
    return int(position)


_COLUMNS = "id, type, project_id, object_type, object_id, actor, assumed_role, request_id, data, created_at"
_MOVE = f"""
    with oldest as (select sequence from outbox_event order by sequence limit %s),
    taken as (delete from outbox_event o using oldest where o.sequence = oldest.sequence returning o.*),
    logged as (
        insert into event_log (at, {_COLUMNS})
        -- not `now()`, which may be before the lock: times increase with positions
        select statement_timestamp(), {_COLUMNS} from taken order by sequence
        returning 1
    )
    select count(*) from logged
"""  # noqa: S608 names of our own
_BEFORE = """
    select coalesce(
        (select position - 1 from event_log where at >= %s order by at, position limit 1),
        (select max(position) from event_log),
        0
    )
"""
_LOOK = """
    select exists(select 1 from outbox_event), coalesce((select max(position) from event_log), 0)
"""
_READ = f"""
    select position, {_COLUMNS} from event_log
    where position > %s and position <= %s
      and (cardinality(%s::text[]) = 0 or type = any(%s::text[]))
      and (cardinality(%s::text[]) = 0 or project_id = any(%s::text[]))
      and (%s = '' or object_type = %s) and (%s = '' or object_id = %s)
    order by position limit %s
"""  # noqa: S608 names of our own
