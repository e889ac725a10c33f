"""The log is as large as what the pipeline has not flushed: partitions come ahead and go when they are flushed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from ingest.models import IngestConnection, IngestLogHead, IngestRequest, IngestRequestCount, IngestSource
from ingest.services import log, retention
from ingest.services.log import Request
from ingest.services.periodic_tasks import forget_ingest_sources, keep_ingest_log
from lakewarden import config
from tenants.models import Warehouse
from tests.integration.catalog.observed import eventually
from tests.integration.ingest.batches import ROOMY, TABLES, append, batch, logged, open_source, run, unchanged

_WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, database: None) -> Iterator[None]:
    monkeypatch.setattr(retention, "SPAN", 10)
    monkeypatch.setattr(retention, "FROM", 5)
    yield
    with connection.cursor() as cursor:
        for each in retention.partitions():
            cursor.execute(f"drop table {each.name}")


def receive(warehouse: Warehouse, first: int, last: int) -> None:
    async def send() -> None:
        await open_source(warehouse.id, source_id="s")
        outcomes = await append(warehouse.id, [batch(number) for number in range(first, last + 1)], capacity=ROOMY)
        assert {each.verdict for each in outcomes} == {"appended"}

    run(send())


def bounds() -> list[tuple[int, int]]:
    return sorted((each.begin, each.end) for each in retention.partitions())


def place_of(warehouse_id: UUID, position: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "select tableoid::regclass::text from ingest_batch where warehouse_id = %s and position = %s",
            [warehouse_id, position],
        )
        return str(cursor.fetchone()[0])


def test_a_warehouse_that_has_received_little_has_no_partition(warehouse: Warehouse) -> None:
    receive(warehouse, 1, 4)
    assert keep_ingest_log(0) == 0
    assert bounds() == []
    run(log.mark_flushed(warehouse.id, upto=3))
    keep_ingest_log(0)
    assert [row[0] for row in logged(warehouse.id)] == [4]


def test_a_batch_that_arrives_while_its_partition_is_attached_is_appended(
    warehouse: Warehouse, database_url: str
) -> None:
    receive(warehouse, 1, 1)
    next_one = retention.Partition(warehouse.id, 2, 12)
    with psycopg.connect(database_url) as attaching, ThreadPoolExecutor() as pool:
        attaching.execute("select 1 from ingest_log_head for update")
        received = pool.submit(receive, warehouse, 2, 2)
        eventually(lambda: attaching.execute(_WAITING).fetchone() == (1,))
        attaching.execute(f"create table {next_one.name} (like ingest_batch including defaults including storage)")
        attaching.execute(
            f"alter table ingest_batch attach partition {next_one.name} for values from ('{warehouse.id}', 2)"
            f" to ('{warehouse.id}', 12)"
        )
        attaching.commit()
        received.result()
    assert place_of(warehouse.id, 2) == next_one.name


def test_partitions_are_made_ahead_and_dropped_when_they_are_flushed(warehouse: Warehouse) -> None:
    receive(warehouse, 1, 6)
    keep_ingest_log(0)
    assert bounds() == [(7, 17), (17, 27)]
    keep_ingest_log(0)
    assert len(bounds()) == 2
    receive(warehouse, 7, 26)
    assert place_of(warehouse.id, 6) == "ingest_batch_default"
    assert place_of(warehouse.id, 7).endswith("_7_10")
    assert place_of(warehouse.id, 26).endswith("_17_10")
    run(log.mark_flushed(warehouse.id, upto=15))
    assert keep_ingest_log(0) == 0
    assert bounds()[:3] == [(7, 17), (17, 27), (27, 37)]
    run(log.mark_flushed(warehouse.id, upto=16))
    assert keep_ingest_log(0) == 1
    assert [row[0] for row in logged(warehouse.id)] == list(range(17, 27))
    receive(warehouse, 27, 27)
    assert place_of(warehouse.id, 27).endswith("_27_10")
    assert IngestLogHead.objects.get().last_position == 27


def test_what_came_faster_than_partitions_lies_in_the_default_one_and_goes_from_there(warehouse: Warehouse) -> None:
    receive(warehouse, 1, 6)
    keep_ingest_log(0)
    receive(warehouse, 7, 60)
    assert place_of(warehouse.id, 60) == "ingest_batch_default"
    keep_ingest_log(0)
    assert bounds()[-1][1] - 60 > 80
    receive(warehouse, 61, 62)
    assert place_of(warehouse.id, 61).endswith("_61_10")
    run(log.mark_flushed(warehouse.id, upto=62))
    assert keep_ingest_log(0) == 2
    assert [row[0] for row in logged(warehouse.id)] == [61, 62]


def test_the_log_of_a_warehouse_that_is_gone_goes(warehouse: Warehouse) -> None:
    receive(warehouse, 1, 6)
    keep_ingest_log(0)
    receive(warehouse, 7, 8)
    warehouse.delete()
    assert keep_ingest_log(0) == 2
    assert logged(warehouse.id) == []
    assert bounds() == []


def test_a_lock_that_is_held_postpones_the_work(warehouse: Warehouse, database_url: str) -> None:
    receive(warehouse, 1, 6)
    with psycopg.connect(database_url) as reader:
        reader.execute("select 1 from ingest_log_head for update")
        assert retention.provide() == 0
    assert retention.provide() == 2


def test_silent_sources_are_forgotten_but_not_those_that_are_connected(warehouse: Warehouse) -> None:
    for source in ("gone", "here"):
        run(open_source(warehouse.id, source_id=source))
    later = datetime.now(UTC) + timedelta(days=31)
    IngestConnection.objects.create(
        id=warehouse.id, warehouse=warehouse, server=warehouse.id, address="a", principal="oidc~a", source_id="here",
        until=later,
    )  # fmt: skip
    forget_ingest_sources(int(datetime.now(UTC).timestamp()))
    assert IngestSource.objects.count() == 2
    forget_ingest_sources(int(later.timestamp()))
    assert [each.source_id for each in IngestSource.objects.all()] == ["here"]


def test_requests_are_forgotten_in_parts_and_then_there_is_room_for_others(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewarden.retention.BATCH", 2)
    decided = run(unchanged(warehouse.id))
    run(log.begin(warehouse.id))
    sent = [Request("oidc~a", "http-cdc-1", f"{number}", 1, b"[1]", TABLES, b"[1]", 3) for number in range(5)]
    run(log.append_requests(warehouse.id, sent, capacity=ROOMY, decided=decided))
    now = datetime.now(UTC)
    assert forget_ingest_sources(int(now.timestamp())) == 0
    assert IngestRequestCount.objects.count() == 2
    later = now + timedelta(seconds=config.current().ingest.recognised_s + 1)
    assert forget_ingest_sources(int(later.timestamp())) == 5
    assert not IngestRequest.objects.exists()
    assert not IngestRequestCount.objects.exists()
