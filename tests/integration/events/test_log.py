"""The log holds each event once, in the order of commits; what commits late is never stepped over."""

import random
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction

from lakewarden.events import log
from lakewarden.events.log import PARTITIONS
from lakewarden.events.models import EventSink, LoggedEvent
from lakewarden.events.periodic_tasks import keep_event_log, oldest_waiting
from tests.integration.events.events import all_moved, change, logged, outbox_count, record_change

NOON = datetime(2031, 3, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def no_partitions_are_left(database: None) -> Iterator[None]:
    yield
    with connection.cursor() as cursor:
        cursor.execute("delete from event_log")
        for day in PARTITIONS.days():
            cursor.execute(f"drop table event_log_{day:%Y%m%d}")


def test_events_move_to_the_log_in_their_order_and_once() -> None:
    for number in range(5):
        change("t", number)
    assert log.append_new(2) == 2
    assert log.append_new(10) == 3
    assert log.append_new() == 0
    assert logged() == [("t", number) for number in range(5)]
    assert [each.position for each in log.read(after=0, limit=10)] == [1, 2, 3, 4, 5]
    assert outbox_count() == 0
    (first, *_) = log.read(after=0, limit=1)
    assert (first.actor, first.request_id, first.project_id, first.type) == ("oidc~alice", "r", "p", "updateTable")


def test_an_event_that_commits_late_comes_after_those_that_were_read() -> None:
    """Its number in the outbox is lower than theirs: a reader of the outbox would have stepped over it."""
    may_commit, has_written = threading.Event(), threading.Event()

    def late() -> None:
        with transaction.atomic():
            record_change("late", 0)
            has_written.set()
            assert may_commit.wait(20)
        connections.close_all()

    slow = threading.Thread(target=late)
    slow.start()
    assert has_written.wait(20)
    change("early", 1)
    assert all_moved() == 1
    reader_at = log.last_position()
    may_commit.set()
    slow.join(20)
    assert all_moved() == 1
    assert [each.object_id for each in log.read(after=reader_at, limit=10)] == ["late"]


def test_one_process_at_a_time_numbers_events(database_url: str) -> None:
    change("t", 0)
    with psycopg.connect(database_url) as other:
        other.execute("select pg_advisory_xact_lock(%s)", [log._LOCK])
        assert log.append_new() == 0
    assert log.append_new() == 1


def test_objects_keep_their_order_while_many_write_and_some_roll_back(database_url: str) -> None:
    """Writers of one object wait for each other, as changes of a row do."""
    seed = random.randrange(1_000_000)  # noqa: S311 no secret
    done, moved = threading.Event(), [0]

    def mover() -> None:
        while not done.is_set():
            moved[0] += log.append_new(7)
        connections.close_all()

    def writer(seed_of_mine: int) -> dict[str, list[int]]:
        chance, mine = random.Random(seed_of_mine), dict[str, list[int]]()  # noqa: S311
        for _ in range(60):
            name = f"t{chance.randrange(4)}"
            with transaction.atomic():
                row = _locked(name)
                record_change(name, row)
                if chance.random() < 0.2:
                    transaction.set_rollback(True)
                    continue
                _advance(name)
            mine.setdefault(name, []).append(row)
        connections.close_all()
        return mine

    with connection.cursor() as cursor:
        cursor.execute("create table test_rows (name text primary key, number int not null default 0)")
        cursor.execute("insert into test_rows select 't' || n from generate_series(0, 3) n")
    try:
        moving = threading.Thread(target=mover)
        moving.start()
        with ThreadPoolExecutor(6) as pool:
            made = list(pool.map(writer, range(seed, seed + 6)))
        done.set()
        moving.join(20)
        all_moved()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("drop table test_rows")
    expected = {name: sorted(sum((each.get(name, []) for each in made), [])) for name in ("t0", "t1", "t2", "t3")}
    found: dict[str, list[int]] = {}
    for name, number in logged():
        found.setdefault(name, []).append(number)
    assert found == expected, seed


def _locked(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select number from test_rows where name = %s for update", [name])
        return int(cursor.fetchone()[0])


def _advance(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("update test_rows set number = number + 1 where name = %s", [name])


def test_events_are_read_by_type_and_project() -> None:
    change("a", 1)
    change("b", 2, project="q")
    change("c", 3, kind="createTable")
    all_moved()

    def names(**chosen: Any) -> list[str]:
        return [each.object_id for each in log.read(after=0, limit=10, **chosen)]

    assert names(types=["createTable"]) == ["c"]
    assert names(projects=["q"]) == ["b"]
    assert names(types=["updateTable"], projects=["p"]) == ["a"]


def test_days_go_after_their_retention_but_not_before_a_served_sink_has_them() -> None:
    old = NOON - 30 * DAY
    PARTITIONS.provide(old)
    change("t", 0)
    all_moved()
    with connection.cursor() as cursor:
        cursor.execute("update event_log set at = %s", [old])
    sink = EventSink.objects.create(name="lake", delivered=0, seen_at=NOON)
    assert oldest_waiting(NOON) == old
    keep_event_log(timestamp=int(NOON.timestamp()))
    assert len(logged()) == 1
    # taken out of the settings, or without a worker for a week
    EventSink.objects.filter(name="lake").update(seen_at=NOON - 8 * DAY)
    assert oldest_waiting(NOON) is None
    EventSink.objects.filter(name="lake").update(seen_at=NOON, delivered=1)
    assert keep_event_log(timestamp=int(NOON.timestamp())) == 8
    assert logged() == []
    sink.delete()


def test_a_time_is_found_without_looking_at_what_came_after(database: None) -> None:
    """Whoever may read may name any time: the cost must not grow with the events since then."""
    for number in range(3):
        change("t", number)
    all_moved()
    with connection.cursor() as cursor:
        cursor.execute("update event_log set at = at - interval '1 hour' where position = 1")
    first, second, third = LoggedEvent.objects.order_by("position")
    assert log.position_before(first.at) == 0
    assert log.position_before(second.at) == first.position
    assert log.position_before(third.at + timedelta(hours=1)) == third.position
    LoggedEvent.objects.all().delete()
    assert log.position_before(first.at) == 0
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into event_log (at, id, type, object_type, object_id, actor, assumed_role, request_id, data, "
            "created_at) select now() + make_interval(secs => i), gen_random_uuid(), 'updateTable', 'table', 't', 'a', "
            "'', 'r', '{}', now() from generate_series(1, 20000) i"
        )
        cursor.execute("analyze event_log")
        cursor.execute(f"explain (analyze, costs off, timing off) {log._BEFORE}", [first.at])
        plan = "\n".join(row for (row,) in cursor.fetchall())
    looked_at = [int(float(each)) for each in re.findall(r"actual rows=([0-9.]+)", plan)]
    assert max(looked_at) <= 1, plan
    assert "Rows Removed" not in plan, plan
