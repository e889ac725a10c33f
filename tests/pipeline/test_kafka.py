"""A log whose contents are in Kafka: exactly once in the tables, and one that is gone stops the pipeline by name."""

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest.references import ID_HEADER, Reference, pack
from lakewarden.config import KafkaConfig
from tests.pipeline.durable_log import change
from tests.pipeline.flushing import DEADLINE_S, Stage
from tests.pipeline.processes import await_flushes, pipeline, random_changes, replayed
from tests.servers import kafka
from tests.servers.kafka import KafkaServer

TOPIC = "contents"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaServer]:
    with kafka.start() as running:
        admin = AdminClient({"bootstrap.servers": running.plain})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(60)
        yield running


@pytest.fixture
def settings(broker: KafkaServer) -> KafkaConfig:
    """With a password, which the executors need, too."""
    options = "security.protocol=SASL_PLAINTEXT;sasl.mechanism=PLAIN;sasl.username=lake;sasl.password=lake-secret"
    return KafkaConfig.model_validate({"bootstrap_servers": broker.sasl, "options": options})


@pytest.fixture
def into(broker: KafkaServer) -> Callable[[bytes], bytes]:
    """Writes a content, among records to which nothing refers, and returns the reference."""
    producer = Producer({"bootstrap.servers": broker.plain})

    def write(content: bytes) -> bytes:
        written: list[Reference] = []

        def ended(error: object, message: Message) -> None:
            assert error is None, error
            written.append(Reference(TOPIC, message.partition() or 0, message.offset() or 0, identifier))

        identifier = uuid4().hex
        producer.produce(TOPIC, b"nobody refers to it", partition=0)
        headers: list[tuple[str, str | bytes | None]] = [(ID_HEADER, identifier)]
        producer.produce(TOPIC, content, partition=0, headers=headers, on_delivery=ended)
        producer.flush(60)
        return pack(written[0])

    return write


@pytest.mark.timeout(2700)
def test_contents_in_kafka_are_in_the_tables_once_although_the_pipeline_is_killed(
    stage: Stage, settings: KafkaConfig, into: Callable[[bytes], bytes]
) -> None:
    """Some batches of the same log are in Postgres: the setting of the gateway was changed."""
    stage.follower.stop()
    stage.policy("both")
    events = random_changes(300, seed=17)
    for start in range(0, len(events), 25):
        where = None if start % 100 == 0 else into
        stage.log.append(events[start : start + 25], compressed=start % 50 == 25, into=where)
    with pipeline(stage, kafka=settings) as process:
        await_flushes(stage, process, count=1)
        process.send_signal(signal.SIGKILL)
    with pipeline(stage, kafka=settings) as process:
        await_flushes(stage, process, count=1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, process.communicate()[1]
    stage.follower.start()
    assert [row["_cdc_sequence"] for row in stage.rows("t")] == [event["sequence"] for event in events]
    assert stage.mirror("t_current") == replayed(events)


def test_a_content_that_is_gone_stops_the_pipeline_and_is_named(
    stage: Stage, settings: KafkaConfig, into: Callable[[bytes], bytes]
) -> None:
    missing = pack(Reference(TOPIC, 1, 77, "0" * 32))
    stage.follower.stop()
    usual = stage.follower.options
    stage.follower.options = replace(usual, kafka=settings)
    stage.log.append([change("t", "a", 1, {"v": 1})], into=into)
    position = stage.log.append([change("t", "b", 2, {"v": 2})], into=lambda _: missing)
    stage.log.append([change("t", "c", 3, {"v": 3})], into=into)
    stage.follower.start()
    try:
        stage.await_error(f"gone from Kafka: topic {TOPIC}, partition 1, offset 77")
        assert stage.log.positions()[1] < position
        # as the how-to says for contents that are lost
        stage.log.query(
            "update ingest_batch set encoding = 0, content = '[]' where warehouse_id = %s and position = %s returning 1",
            stage.log.warehouse,
            position,
        )
        stage.flush()
    finally:
        stage.follower.stop()
        stage.follower.options = usual
        stage.follower.start()
    assert [row["_cdc_row_id"] for row in stage.rows("t")] == ["a", "c"]
