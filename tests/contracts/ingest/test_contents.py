"""Contents in Kafka: what is acknowledged is there, once, and what the log does not take is not written there."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from ingest.models import IngestBatch
from lakewarden import config
from lakewarden.config import KafkaLogConfig
from lakewarden.doctor import ingest_contents
from tenants.models import Warehouse
from tests.contracts.ingest.topics import logged_contents, make_topic, records_of, references, settings_of
from tests.installation import Grant
from tests.integration.ingest.batches import logged, run
from tests.integration.ingest.changed import create_table, limits, revoke
from tests.integration.ingest.fallbacks import cancelled, drained, started
from tests.integration.ingest.messages import batch, connect, event
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_socket import opened
from tests.servers.kafka import KafkaServer

pytestmark = pytest.mark.usefixtures("lake")
GOOD = {"message.timestamp.type": "LogAppendTime", "retention.ms": "-1", "max.message.bytes": "8000000"}


def test_batches_are_in_kafka_byte_for_byte_when_they_are_acknowledged(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer, engine: AsgiClient
) -> None:
    with opened() as socket:
        socket.ask(connect(lastAckSequence=0))
        for number in range(1, 20):
            socket.send(batch(number))
        assert {socket.receive()["status"] for _ in range(19)} == {"ok"}
    found = logged_contents(lake.id, contents, broker)
    assert [(number, json.loads(content)) for number, content in found] == [
        (number, [event(number)]) for number in range(1, 20)
    ]
    assert {each.partition for _, each in references(lake.id)} == {references(lake.id)[0][1].partition}
    assert engine.get("/lakehouse/analytics/status").json()["primaryStorage"] == "kafka"


def test_what_the_log_does_not_take_is_not_written(  # noqa: PLR0917 fixtures
    lake: Warehouse,
    contents: KafkaLogConfig,
    broker: KafkaServer,
    engine: AsgiClient,
    grant: Grant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_table(engine, lake, "users")
    grant("writer", "modify")
    writer, body = engine.as_user("writer"), {"events": [event(1)]}
    with opened("writer") as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        assert socket.ask(batch(1))["status"] == "duplicate"
        assert "2 is expected" in socket.ask(batch(1, event(9)))["errorMessage"]
        assert socket.ask(batch(7))["reason"] == "invalid_sequence"
        assert writer.post("/lakehouse/cdc", body).json()["isDuplicate"] is False
        assert writer.post("/lakehouse/cdc", body).json()["isDuplicate"] is True
        assert len(records_of(contents, broker)) == 2
        limits(monkeypatch, buffer_bytes=1024)
        large = event(2, after={"x": "y" * 2000})
        assert socket.ask(batch(2, large))["reason"] == "buffer_full"
        assert writer.post("/lakehouse/cdc", {"events": [large]}).status == 503
        limits(monkeypatch, buffer_bytes=1 << 30)
        revoke(lake, "writer", "modify")
        assert socket.ask(batch(2))["reason"] == "invalid_format"
        assert writer.post("/lakehouse/cdc", {"events": [event(3)]}).status == 404
    assert len(records_of(contents, broker)) == 2
    assert len(references(lake.id)) == 2


def test_a_batch_that_kafka_does_not_take_harms_only_its_sender(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer
) -> None:
    make_topic(contents, broker, {"max.message.bytes": "100000"})
    large = event(1, after={"x": os.urandom(100_000).hex()})
    with opened() as one, opened() as other:
        one.ask(connect("one", lastAckSequence=0))
        other.ask(connect("other", lastAckSequence=0))
        for number in range(1, 10):
            other.send(batch(number, sourceDoId="other"))
            one.send(batch(number, *([large] if number == 5 else []), sourceDoId="one"))
        found = [one.receive() for _ in range(9)]
        assert {other.receive()["status"] for _ in range(9)} == {"ok"}
        assert [each.get("status") for each in found[:4]] == ["ok"] * 4
        assert found[4]["reason"] == "invalid_format"
        assert "does not take" in found[4]["errorMessage"]
        assert {each["reason"] for each in found[5:]} == {"invalid_sequence"}
        assert one.ask(batch(5, sourceDoId="one"))["status"] == "ok"
    assert len(logged_contents(lake.id, contents, broker)) == 14


def test_a_wrong_password_is_named_and_in_no_log(
    broker: KafkaServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    options = "security.protocol=SASL_PLAINTEXT;sasl.mechanism=PLAIN;sasl.username=lake;sasl.password=wrong-secret"
    settings = settings_of(broker, bootstrap_servers=broker.sasl, options=options, timeout_s=3)
    limits(monkeypatch, contents="kafka", kafka=settings)
    with opened() as socket:
        assert socket.ask(batch(1))["reason"] == "internal_error"
    (finding,) = ingest_contents.examine(config.current())
    assert "refused the user name or password" in caplog.text
    assert "refused the user name or password" in finding.sentence
    assert "wrong-secret" not in caplog.text + str(finding)


def test_doctor_warns_of_a_topic_that_loses_contents(contents: KafkaLogConfig, broker: KafkaServer) -> None:
    assert [each.state for each in ingest_contents.examine(config.current())] == ["ok"]
    make_topic(contents, broker, {"retention.ms": "3600000", "max.message.bytes": "1000"})
    found = list(ingest_contents.examine(config.current()))
    assert [each.state for each in found] == ["warn"] * 3
    assert "retention.ms=3600000" in found[0].sentence
    assert "message.timestamp.type=CreateTime" in found[1].sentence
    assert "1000 bytes" in found[2].sentence


def test_doctor_finds_nothing_at_a_topic_that_the_gateway_has_made(lake: Warehouse) -> None:
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    (finding,) = ingest_contents.examine(config.current())
    assert finding.state == "ok"
    assert "each partition" in finding.sentence


def test_doctor_fails_when_a_batch_waits_for_longer_than_its_content_is_kept(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(contents, broker, {**GOOD, "retention.ms": "3600000"})
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    database = config.current().database.model_copy(update={"url": SecretStr(database_url)})
    settings = config.current().model_copy(update={"database": database})
    assert [each.state for each in ingest_contents.examine(settings)] == ["warn"]
    IngestBatch.objects.filter(warehouse_id=lake.id).update(received_at=datetime.now(UTC) - timedelta(hours=2))
    (finding,) = ingest_contents.examine(settings)
    assert finding.state == "FAIL"
    assert "its content may be gone" in finding.sentence


def test_doctor_warns_of_too_few_copies(
    contents: KafkaLogConfig, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(contents, broker, GOOD)
    limits(monkeypatch, kafka=contents.model_copy(update={"replicas": 3, "min_in_sync": 2}))
    found = list(ingest_contents.examine(config.current()))
    assert [each.state for each in found] == ["warn"] * 2
    assert "1 of 3 copies" in found[0].sentence
    assert "min.insync.replicas=1" in found[1].sentence


def test_while_kafka_does_not_answer_batches_go_to_the_fallback_file(
    lake: Warehouse, broker: KafkaServer, contents: KafkaLogConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is frozen: the database answers all the time."""
    limits(monkeypatch, kafka=contents.model_copy(update={"timeout_s": 2.0}))
    fallback = started(tmp_path, monkeypatch)
    with opened() as socket:
        socket.ask(connect(lastAckSequence=0))
        assert socket.ask(batch(1))["status"] == "ok"
        os.killpg(broker.process.pid, signal.SIGSTOP)
        try:
            assert [socket.ask(batch(number))["status"] for number in range(2, 20)] == ["fallback"] * 18
        finally:
            os.killpg(broker.process.pid, signal.SIGCONT)
        drained(fallback)
        run(cancelled(fallback))
        assert socket.ask(batch(20))["status"] == "ok"
    assert [row[:3] for row in logged(lake.id)] == [(number, "abc123", number) for number in range(1, 21)]


def test_contents_of_both_kinds_are_read_although_the_setting_changes(
    lake: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as socket:
        for number, where in enumerate(["kafka", "postgres", "kafka"], start=1):
            limits(monkeypatch, contents=where)
            assert socket.ask(batch(number))["status"] == "ok"
    assert [json.loads(row[3]) for row in logged(lake.id)] == [[event(number)] for number in (1, 2, 3)]
