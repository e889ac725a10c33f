"""Maintains the daily partitions (UTC) of the audit: creates them in advance, drops them after their retention.

Called by the hourly task. A row whose day has no partition goes to the default partition, where queries find it as
well. It is moved after its day is over, because moving locks out writers of that day.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from lakewarden.prepared_statements import fetch

logger = logging.getLogger(__name__)

AHEAD: Final = 7  # days
DAY: Final = timedelta(days=1)
_LOCK: Final = 0x6C6B6175  # advisory lock: only one worker at a time changes partitions
_PREFIX: Final = "audit_entry_"
# longest wait for a table lock: writers queue up behind a waiting lock, so they wait no longer than this
_PATIENCE: Final = "1s"


def provide(now: datetime) -> list[date]:
    """Create partitions for today and the next days, and for past days with rows in the default one; returns the new
    ones.

    A day that is not over and has rows in the default partition must wait until it is over. A day for which a lock
    could not be taken in time is tried again in the next run.
    """
    today = now.astimezone(UTC).date()
    astray = {day for (day,) in fetch(_ASTRAY, [])}
    wanted = {today + number * DAY for number in range(AHEAD + 1)} - astray | {day for day in astray if day < today}
    return [day for day in sorted(wanted - days()) if _made(day, moving=day in astray)]


def retire(now: datetime, *, retention_days: int) -> list[date]:
    """Drop the partitions of days more than `retention_days` before today; returns the dropped days.

    Rows of such days in the default partition are deleted.
    """
    horizon = now.astimezone(UTC).date() - retention_days * DAY
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("delete from audit_entry_default where at < %s", [_midnight(horizon)])
    return [day for day in sorted(days()) if day < horizon and _dropped(day)]


def days() -> set[date]:
    """The days that have a partition of their own."""
    return {datetime.strptime(name, f"{_PREFIX}%Y%m%d").replace(tzinfo=UTC).date() for (name,) in fetch(_DAYS, [])}


def _made(day: date, *, moving: bool) -> bool:
    name, bounds = _name(day), [_midnight(day), _midnight(day + DAY)]
    with _patient(f"made for {day}") as cursor:
        if day in days():
            return False  # another worker was first
        cursor.execute(f"create table {name} (like audit_entry including defaults)")
        if moving:
            cursor.execute("lock table audit_entry_default in access exclusive mode")
            cursor.execute(
                f"with moved as (delete from audit_entry_default where at >= %s and at < %s returning {_COLUMNS}) "  # noqa: S608 names of our own
                f"insert into {name} ({_COLUMNS}) select {_COLUMNS} from moved",
                bounds,
            )
        cursor.execute(f"alter table audit_entry attach partition {name} for values from (%s) to (%s)", bounds)
    return day in days()


def _dropped(day: date) -> bool:
    with _patient(f"dropped for {day}") as cursor:
        cursor.execute(f"drop table if exists {_name(day)}")
    return day not in days()


@contextmanager
def _patient(what: str) -> Iterator[CursorWrapper]:
    """A transaction that gives up early, so writers do not wait behind its lock; that is logged, not raised."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"set local lock_timeout = '{_PATIENCE}'")
            cursor.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
            yield cursor
    except OperationalError as error:
        logger.warning("no partition of the audit was %s, it is tried again later: %s", what, str(error).strip())


def _name(day: date) -> str:
    return f"{_PREFIX}{day:%Y%m%d}"


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


_COLUMNS = (
    "id, at, actor, assumed_role, action, object_type, object_id, project_id, outcome, reason, request_id, user_agent, "
    "count, last_at, details"
)
_DAYS = """
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'audit_entry'::regclass and c.relname <> 'audit_entry_default'
"""
_ASTRAY = "select distinct (at at time zone 'UTC')::date from audit_entry_default"
