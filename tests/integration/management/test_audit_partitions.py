"""The audit is cut by day: days are made ahead, rows without one are found and moved later, old days are dropped."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from lakewarden.audit.entries import Entry, write
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.partitions import PARTITIONS
from lakewarden.audit.periodic_tasks import keep_audit_partitions
from lakewarden.config import PREFIX
from tests.servers.lakewarden_serve import prepared

TODAY = date(2031, 3, 10)
NOON = datetime(2031, 3, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def only_the_days_of_the_migration(database: None) -> Iterator[None]:
    """What a test makes is dropped, so that the next starts with the same days."""
    before = PARTITIONS.days()
    yield
    with connection.cursor() as cursor:
        cursor.execute("delete from audit_entry")
        for day in PARTITIONS.days() - before:
            cursor.execute(f"drop table audit_entry_{day:%Y%m%d}")


def entry(at: datetime, object_id: str = "t") -> None:
    write([Entry(at=at, actor="a", action="drop", object_type="table", object_id=object_id, outcome="denied")])


def place(object_id: str) -> str:
    """The partition that an entry lies in."""
    with connection.cursor() as cursor:
        cursor.execute("select tableoid::regclass::text from audit_entry where object_id = %s", [object_id])
        (row,) = cursor.fetchall()
    return str(row[0])


def test_today_and_the_days_ahead_are_made_once() -> None:
    assert PARTITIONS.provide(NOON) == [TODAY + number * DAY for number in range(8)]
    assert PARTITIONS.provide(NOON) == []


def test_midnight_needs_nobody() -> None:
    PARTITIONS.provide(NOON)
    midnight = datetime(2031, 3, 11, tzinfo=UTC)
    entry(midnight - timedelta(microseconds=1), "before")
    entry(midnight, "after")
    assert (place("before"), place("after")) == ("audit_entry_20310310", "audit_entry_20310311")
    assert PARTITIONS.provide(midnight) == [TODAY + 8 * DAY]


def test_a_day_without_partition_is_found_and_moved_when_it_is_over() -> None:
    entry(NOON, "astray")
    assert place("astray") == "audit_entry_default"
    assert AuditEntry.objects.get(object_id="astray").at == NOON
    # nobody who writes today waits for its rows to be moved
    assert TODAY not in PARTITIONS.provide(NOON)
    entry(NOON + timedelta(hours=1), "astray too")
    assert PARTITIONS.provide(NOON + DAY) == [TODAY, TODAY + 8 * DAY]
    assert (place("astray"), place("astray too")) == ("audit_entry_20310310", "audit_entry_20310310")
    assert AuditEntry.objects.count() == 2


def test_what_is_past_its_retention_is_dropped_by_whole_days() -> None:
    ages = {"old": 31, "last": 30, "fresh": 1}
    for name, days in ages.items():
        PARTITIONS.provide(NOON - days * DAY)
        entry(NOON - days * DAY, name)
    entry(NOON - 400 * DAY, "astray and old")
    gone = PARTITIONS.retire(NOON, retention_days=30)
    assert TODAY - 31 * DAY in gone
    assert TODAY - 30 * DAY not in gone
    assert set(AuditEntry.objects.values_list("object_id", flat=True)) == {"last", "fresh"}
    assert min(PARTITIONS.days()) == TODAY - 30 * DAY


@pytest.fixture
def other(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url) as connected:
        yield connected


def test_a_day_in_use_is_left_for_the_next_time(
    other: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    PARTITIONS.provide(NOON)
    other.execute("select * from audit_entry_20310310")  # its transaction stays open
    started = datetime.now(UTC)
    gone = PARTITIONS.retire(NOON + 2 * DAY, retention_days=1)
    assert datetime.now(UTC) - started < timedelta(seconds=8)
    assert TODAY not in gone
    assert "no partition of audit_entry was dropped for 2031-03-10" in caplog.text
    other.rollback()
    assert TODAY in PARTITIONS.retire(NOON + 2 * DAY, retention_days=1)


def test_days_are_made_while_somebody_writes(other: psycopg.Connection[Any]) -> None:
    PARTITIONS.provide(NOON)
    other.execute(
        "insert into audit_entry (at, actor, action, object_type, object_id, outcome, request_id, user_agent, details)"
        " values (%s, 'a', 'b', 'table', 'open', 'done', '', '', '{}')",
        [NOON],
    )
    assert PARTITIONS.provide(NOON + 3 * DAY) == [TODAY + number * DAY for number in (8, 9, 10)]
    other.commit()
    assert place("open") == "audit_entry_20310310"


def test_the_task_makes_and_drops() -> None:
    from procrastinate.contrib.django import app  # noqa: PLC0415 needs settings

    assert "keep_audit_partitions" in app.tasks
    entry(NOON - 91 * DAY, "old")
    PARTITIONS.provide(NOON - 90 * DAY)
    assert keep_audit_partitions(timestamp=int(NOON.timestamp())) >= 1
    assert {TODAY, TODAY + 7 * DAY} <= PARTITIONS.days()
    assert AuditEntry.objects.count() == 0


def test_rows_of_the_release_before_are_kept_by_the_migration() -> None:
    with prepared({f"{PREFIX}OPENID__OIDC__ISSUER": "https://issuer.invalid"}) as server:
        with psycopg.connect(server.settings[f"{PREFIX}DATABASE__URL"], autocommit=True) as database:
            name = database.execute("select current_database()").fetchone()
        _check_migration(str(name[0]) if name else "")


def _check_migration(name: str) -> None:
    settings = connection.settings_dict
    before = settings["NAME"]
    connection.close()
    settings["NAME"] = name
    try:
        call_command("migrate", "audit", "0002", verbosity=0)
        with connection.cursor() as cursor:
            columns = "at, actor, action, object_type, object_id, outcome, request_id, user_agent, details"
            for days in (0, 1, 500):
                cursor.execute(
                    f"insert into audit_entry ({columns}) values (%s, 'a', 'b', 'table', %s, 'done', 'r', '', %s)",  # noqa: S608
                    [datetime.now(UTC) - days * DAY, str(uuid4()), '{"count": 3}'],
                )
        call_command("migrate", "audit", verbosity=0)
        assert sorted(AuditEntry.objects.values_list("id", "count")) == [(1, 3), (2, 3), (3, 3)]
        assert AuditEntry.objects.create(actor="a", action="b", details={}).id == 4
        assert len(PARTITIONS.days()) == 4
        with connection.cursor() as cursor:
            cursor.execute("select count(*) from audit_entry_default")
            assert cursor.fetchone() == (0,)
        call_command("migrate", "audit", "0002", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("select array_agg(id order by id) from audit_entry")
            assert cursor.fetchone() == ([1, 2, 3, 4],)
    finally:
        connection.close()
        settings["NAME"] = before
