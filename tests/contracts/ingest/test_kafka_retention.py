"""Records are deleted when nothing can refer to them any more, not even a server that was frozen."""

import asyncio
import json
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from ingest.services import log
from ingest.services.kafka.retention import delete_flushed
from ingest.services.periodic_tasks import keep_kafka_contents
from lakewarden.config import KafkaLogConfig
from lakewarden.errors import InternalError
from tenants.models import Warehouse
from tests.contracts.ingest.topics import (
    delete_topic,
    delete_upto,
    logged_contents,
    make_anew,
    records_of,
    references,
    topic_id,
)
from tests.integration.ingest.batches import logged, run
from tests.integration.ingest.messages import batch, event
from tests.servers.asgi_socket import opened
from tests.servers.kafka import KafkaServer

NOTHING = timedelta(minutes=-1)
"""Is kept: all records are older than in a minute from now."""

pytestmark = pytest.mark.usefixtures("lake")


def test_what_is_flushed_goes_up_to_the_first_record_that_waits(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer
) -> None:
    with opened() as socket:
        for number in range(1, 11):
            assert socket.ask(batch(number))["status"] == "ok"
        assert keep_kafka_contents(0) == 0
        assert delete_flushed(contents, kept=NOTHING) == 0
        run(log.mark_flushed(lake.id, upto=4))
        assert keep_kafka_contents(0) == 0
        assert delete_flushed(contents, kept=NOTHING) == 4
        assert sorted(offset for _, offset in records_of(contents, broker)) == list(range(4, 10))
        assert socket.ask(batch(11))["status"] == "ok"
        run(log.mark_flushed(lake.id, upto=11))
        assert delete_flushed(contents, kept=NOTHING) == 7
        assert socket.ask(batch(12))["status"] == "ok"
    assert [offset for _, offset in records_of(contents, broker)] == [11]


def test_a_server_that_was_frozen_before_it_referred_to_a_record_writes_it_again(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, waits = log.append, [True]

    async def frozen(*given: Any, **named: Any) -> Any:
        if waits:
            waits.pop()
            await asyncio.to_thread(deleted_elsewhere, contents)
        return await original(*given, **named)

    monkeypatch.setattr(log, "append", frozen)
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    assert not waits
    assert sorted(offset for _, offset in records_of(contents, broker)) == [1]
    assert [each.offset for _, each in references(lake.id)] == [1]


def test_a_topic_that_was_made_anew_takes_batches_at_once(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer
) -> None:
    """Its offsets begin at 0, far below the floors of the one before."""
    with opened() as socket:
        for number in range(1, 6):
            assert socket.ask(batch(number))["status"] == "ok"
        run(log.mark_flushed(lake.id, upto=5))
        assert delete_flushed(contents, kept=NOTHING) == 5
        make_anew(contents, broker)
        assert [socket.ask(batch(number))["status"] for number in (6, 7)] == ["ok"] * 2
    assert [number for number, _ in logged_contents(lake.id, contents, broker, after=5)] == [6, 7]
    assert delete_flushed(contents, kept=NOTHING) <= 1  # the record that was refused
    assert [number for number, _ in logged_contents(lake.id, contents, broker, after=5)] == [6, 7]


def test_a_topic_that_was_deleted_under_a_server_is_made_anew_and_told(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer, caplog: pytest.LogCaptureFixture
) -> None:
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        first = topic_id(contents, broker)
        delete_topic(contents, broker)
        assert socket.ask(batch(2))["status"] == "ok"
    assert topic_id(contents, broker) != first
    assert f"The topic {contents.topic} was deleted in Kafka" in caplog.text
    assert [number for number, _ in logged_contents(lake.id, contents, broker, after=1)] == [2]
    with pytest.raises(InternalError, match="nothing is skipped"):
        logged(lake.id)


def test_a_record_of_a_topic_that_was_made_anew_meanwhile_is_written_again(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, waits = log.append, [True]

    async def frozen(*given: Any, **named: Any) -> Any:
        if waits:
            waits.pop()
            await asyncio.to_thread(make_anew, contents, broker)
            await asyncio.to_thread(deleted_elsewhere, contents, 0)
        return await original(*given, **named)

    monkeypatch.setattr(log, "append", frozen)
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    assert not waits
    assert [json.loads(row[3]) for row in logged(lake.id)] == [[event(1)]]


def deleted_elsewhere(contents: KafkaLogConfig, expected: int = 1) -> None:
    try:
        assert delete_flushed(contents, kept=NOTHING) == expected
    finally:
        connection.close()


def await_waiting(connection: psycopg.Connection) -> None:
    """Until a statement waits for a lock."""
    deadline = time.monotonic() + 60
    asked = "select count(*) from pg_locks where not granted"
    while connection.execute(asked).fetchone() == (0,):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_statement_in_progress_is_waited_for(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer, database_url: str
) -> None:
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        with psycopg.connect(database_url) as other:
            other.execute("select 1 from ingest_log_head for update")
            socket.send(batch(2))
            await_waiting(other)
            assert delete_flushed(contents, kept=NOTHING) == 0
        assert socket.receive()["status"] == "ok"
    assert len(logged(lake.id)) == 2


def test_content_that_is_gone_is_named(lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer) -> None:
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    ((_, reference),) = references(lake.id)
    delete_upto(contents, broker, reference)
    sentence = f"topic {contents.topic}, partition {reference.partition}, offset {reference.offset}"
    with pytest.raises(InternalError, match=sentence):
        logged(lake.id)
