"""Maintains the daily partitions (UTC) of a table: creates them in advance, drops them after their retention.

A row whose day has no partition goes to the table's default partition, where queries find it as well. It is moved after
its day is over, because moving locks out writers of that day.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from lakewarden.prepared_statements import fetch

logger = logging.getLogger(__name__)

AHEAD: Final = 7  # days
DAY: Final = timedelta(days=1)
# longest wait for a table lock: writers queue up behind a waiting lock, so they wait no longer than this
_PATIENCE: Final = "1s"


@dataclass(frozen=True, slots=True)
class DailyPartitions:
    """The partitions of `table` by its column `at`; `lock` is an advisory lock: only one worker at a time changes them.

    All names are inserted into SQL, so they must never come from a caller.
    """

    table: str
    columns: str
    lock: int

    def maintain(self, now: datetime, *, retention_days: int, before: datetime | None = None) -> int:
        """What a worker does each hour: `provide` and `retire`; returns how many days were dropped."""
        made, gone = self.provide(now), self.retire(now, retention_days=retention_days, before=before)
        if made or gone:
            logger.info("%s has %d new days; %d old days were dropped", self.table, len(made), len(gone))
        return len(gone)

    def provide(self, now: datetime) -> list[date]:
        """Create partitions for today and the next days, and for past days with rows in the default one; returns the
        new ones.

        A day that is not over and has rows in the default partition must wait until it is over. A day for which a lock
        could not be taken in time is tried again in the next run.
        """
        today = now.astimezone(UTC).date()
        rows = fetch(f"select distinct (at at time zone 'UTC')::date from {self.table}_default", [])  # noqa: S608
        astray = {day for (day,) in rows}
        wanted = {today + number * DAY for number in range(AHEAD + 1)} - astray | {day for day in astray if day < today}
        return [day for day in sorted(wanted - self.days()) if self._made(day, moving=day in astray)]

    def retire(self, now: datetime, *, retention_days: int, before: datetime | None = None) -> list[date]:
        """Drop the partitions of days more than `retention_days` before today; returns the dropped days.

        Rows of such days in the default partition are deleted. Days that do not lie before `before` stay.
        """
        horizon = now.astimezone(UTC).date() - retention_days * DAY
        if before is not None:
            horizon = min(horizon, before.astimezone(UTC).date())
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"delete from {self.table}_default where at < %s", [_midnight(horizon)])  # noqa: S608
        return [day for day in sorted(self.days()) if day < horizon and self._dropped(day)]

    def days(self) -> set[date]:
        """The days that have a partition of their own."""
        rows = fetch(
            "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid "
            "where i.inhparent = %s::text::regclass and c.relname <> %s",
            [self.table, f"{self.table}_default"],
        )
        return {datetime.strptime(name, f"{self.table}_%Y%m%d").replace(tzinfo=UTC).date() for (name,) in rows}

    def _made(self, day: date, *, moving: bool) -> bool:
        name, bounds = self._name(day), [_midnight(day), _midnight(day + DAY)]
        with self._patient(f"made for {day}") as cursor:
            if day in self.days():
                return False  # another worker was first
            cursor.execute(f"create table {name} (like {self.table} including defaults)")
            if moving:
                cursor.execute(f"lock table {self.table}_default in access exclusive mode")
                cursor.execute(
                    f"with moved as (delete from {self.table}_default where at >= %s and at < %s "  # noqa: S608
                    f"returning {self.columns}) insert into {name} ({self.columns}) select {self.columns} from moved",
                    bounds,
                )
            cursor.execute(f"alter table {self.table} attach partition {name} for values from (%s) to (%s)", bounds)
        return day in self.days()

    def _dropped(self, day: date) -> bool:
        with self._patient(f"dropped for {day}") as cursor:
            cursor.execute(f"drop table if exists {self._name(day)}")
        return day not in self.days()

    @contextmanager
    def _patient(self, what: str) -> Iterator[CursorWrapper]:
        """A transaction that gives up early, so writers do not wait behind its lock; that is logged, not raised."""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"set local lock_timeout = '{_PATIENCE}'")
                cursor.execute("select pg_advisory_xact_lock(%s)", [self.lock])
                yield cursor
        except OperationalError as error:
            reason = str(error).strip()
            logger.warning("no partition of %s was %s, it is tried again later: %s", self.table, what, reason)

    def _name(self, day: date) -> str:
        return f"{self.table}_{day:%Y%m%d}"


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
