"""Keeps the log small: partitions are made ahead of what is written, and dropped once all of them is flushed.

A warehouse that has received little has none: its batches lie in the default partition, and are deleted row by row.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Self
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from lakewarden import config
from lakewarden.prepared_statements import fetch
from lakewarden.retention import forget

SPAN: Final = 20_000
"""Batches of a partition."""
FROM: Final = 2_000
"""Batches that a warehouse has received before it has partitions."""
_AHEAD: Final = 2  # partitions
_FAR_AHEAD: Final = 8  # of a warehouse whose batches came faster than they were made
_PATIENCE: Final = "1s"  # writers queue up behind a waiting lock, so they wait no longer than this
_DELETED_AT_ONCE: Final = 10_000
_NAME: Final = re.compile(r"ib_([0-9a-f]{32})_(\d+)_(\d+)")


class Partition(NamedTuple):
    """Of the positions from `begin` to before `end`."""

    warehouse_id: UUID
    begin: int
    end: int

    @classmethod
    def of(cls, name: str) -> Self | None:
        found = _NAME.fullmatch(name)
        if found is None:
            return None  # the default one
        begin, span = int(found[2]), int(found[3])
        return cls(UUID(found[1]), begin, begin + span)

    @property
    def name(self) -> str:
        return f"ib_{self.warehouse_id.hex}_{self.begin}_{self.end - self.begin}"


def provide() -> int:
    """Make the next partitions of warehouses that receive much; returns how many."""
    made = 0
    for (warehouse_id,) in fetch(_BUSY, [FROM, SPAN]):
        with suppress(OperationalError):  # a lock was not free in time: tried again in the next run
            made += _make(warehouse_id)
    return made


def drop_flushed() -> int:
    """Drop partitions of which everything is flushed, or whose warehouse is gone; returns how many."""
    flushed = dict(fetch("select warehouse_id, flushed_position from ingest_log_head", []))
    gone = 0
    for each in partitions():
        if each.warehouse_id not in flushed or each.end <= flushed[each.warehouse_id] + 1:
            with suppress(OperationalError), _patient() as cursor:
                cursor.execute(f"drop table if exists {each.name}")
                gone += 1
    return gone


def delete_flushed() -> int:
    """Delete such rows of the default partition; returns how many."""
    total, deleted = 0, _DELETED_AT_ONCE
    while deleted == _DELETED_AT_ONCE:
        ((deleted,),) = fetch(_DELETE, [_DELETED_AT_ONCE])
        total += deleted
    return total


def forget_old(now: datetime) -> int:
    """Requests that are no longer recognised, sources that were silent for long, flushes that were answered, leases
    that have ended; returns how many.
    """
    limits = config.current().ingest
    recognised = now - timedelta(seconds=limits.recognised_s)
    silent = now - timedelta(days=limits.source_retention_days)
    requests = forget(
        "ingest_request", first="received_at", expired="received_at < %(at)s", parameters={"at": recognised}
    )
    ((others,),) = fetch(_FORGET, [recognised, silent, now - timedelta(days=1), now - timedelta(minutes=10)])
    return requests + int(others)


def partitions() -> list[Partition]:
    rows = fetch(
        "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid "
        "where i.inhparent = 'ingest_batch'::regclass order by c.relname",
        [],
    )
    return [found for (name,) in rows if (found := Partition.of(name)) is not None]


def _make(warehouse_id: UUID) -> int:
    with _patient() as cursor:
        # the head first, as whoever appends: nobody holds positions that are not in the log yet
        rows = fetch(_HEAD, [warehouse_id])
        if not rows:
            return 0
        last, until = rows[0]
        begin = max(until, last + 1)
        count = _FAR_AHEAD if 0 < until <= last else _AHEAD
        made = 0
        while begin - last <= count * SPAN:
            _attach(cursor, Partition(warehouse_id, begin, begin + SPAN))
            begin, made = begin + SPAN, made + 1
        fetch(_PROVIDED, [begin, warehouse_id])
    return made


def _attach(cursor: CursorWrapper, partition: Partition) -> None:
    name, warehouse_id = partition.name, partition.warehouse_id
    cursor.execute(f"create table {name} (like ingest_batch including defaults including storage)")
    cursor.execute(
        f"alter table ingest_batch attach partition {name} "
        f"for values from ('{warehouse_id}', {partition.begin}) to ('{warehouse_id}', {partition.end})"
    )


@contextmanager
def _patient() -> Iterator[CursorWrapper]:
    """A transaction that gives up early on locks, so that writers do not wait behind it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"set local lock_timeout = '{_PATIENCE}'")
        yield cursor


_BUSY: Final = """
    select warehouse_id from ingest_log_head
    where total_batches >= %s and partitioned_until - last_position <= %s order by warehouse_id
"""
_HEAD: Final = """
    select last_position, partitioned_until from ingest_log_head where warehouse_id = %s for update
"""
_PROVIDED: Final = "update ingest_log_head set partitioned_until = %s where warehouse_id = %s returning 1"
_DELETE: Final = """
    with flushed as (
        select b.ctid from ingest_batch_default b left join ingest_log_head h on h.warehouse_id = b.warehouse_id
        where h.warehouse_id is null or b.position <= h.flushed_position limit %s
    ),
    gone as (delete from ingest_batch_default b using flushed f where b.ctid = f.ctid returning 1)
    select count(*) from gone
"""
_FORGET: Final = """
    with counts as (delete from ingest_request_count where began_at < %s),
    sources as (
        delete from ingest_source s where s.last_activity_at < %s and not exists (
            select 1 from ingest_connection c where c.warehouse_id = s.warehouse_id and c.principal = s.principal
            and c.source_id = s.source_id) returning 1
    ),
    flushes as (delete from ingest_flush_request where requested_at < %s returning 1),
    leases as (delete from ingest_connection where until < %s returning 1)
    select (select count(*) from sources) + (select count(*) from flushes)
         + (select count(*) from leases)
"""
