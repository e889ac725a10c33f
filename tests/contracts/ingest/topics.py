"""Topics of contents, and an independent look at what is in them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from django.db import connection

from ingest.references import IN_KAFKA, Reference, unpack
from lakewarden.config import KafkaLogConfig
from tests.servers.kafka import KafkaServer


def settings_of(broker: KafkaServer, **changed: Any) -> KafkaLogConfig:
    chosen = {"topic": f"ingest-{uuid4()}", "partitions": 3, "replicas": 1, "min_in_sync": 1, "timeout_s": 5}
    return KafkaLogConfig.model_validate({"bootstrap_servers": broker.plain, **chosen, **changed})


def references(warehouse_id: UUID) -> list[tuple[int, Reference]]:
    """What the log refers to, by the numbers of batches; all of it must be in Kafka."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select sequence_number, encoding, content from ingest_batch where warehouse_id = %s order by position",
            [warehouse_id],
        )
        rows = cursor.fetchall()
    assert {encoding for _, encoding, _ in rows} <= {IN_KAFKA}
    return [(number, unpack(bytes(content))) for number, _, content in rows]


def records_of(settings: KafkaLogConfig, broker: KafkaServer) -> dict[tuple[int, int], bytes]:
    """All records of the topic by partition and offset."""
    found: dict[tuple[int, int], bytes] = {}
    consumer = Consumer({"bootstrap.servers": broker.plain, "group.id": str(uuid4()), "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(settings.topic, timeout=60).topics[settings.topic].partitions
        for number in partitions:
            begin, end = consumer.get_watermark_offsets(TopicPartition(settings.topic, number), timeout=60)
            consumer.assign([TopicPartition(settings.topic, number, begin)])
            at = begin
            while at < end:
                record = consumer.poll(30)
                assert record is not None, f"partition {number} ends at {end}, and nothing came after {at}"
                assert record.error() is None, record.error()
                at = (record.offset() or 0) + 1
                found[number, at - 1] = record.value() or b""
    finally:
        consumer.close()
    return found


def logged_contents(warehouse_id: UUID, settings: KafkaLogConfig, broker: KafkaServer) -> list[tuple[int, bytes]]:
    """Number and content of all batches of the log."""
    kept = records_of(settings, broker)
    return [(number, kept[each.partition, each.offset]) for number, each in references(warehouse_id)]


def make_topic(settings: KafkaLogConfig, broker: KafkaServer, config: Mapping[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.plain})
    topic = NewTopic(settings.topic, settings.partitions, 1, config=dict(config))
    admin.create_topics([topic])[settings.topic].result(60)


def delete_upto(settings: KafkaLogConfig, broker: KafkaServer, reference: Reference) -> None:
    """The record, and all before it."""
    place = TopicPartition(settings.topic, reference.partition, reference.offset + 1)
    admin = AdminClient({"bootstrap.servers": broker.plain})
    for each in admin.delete_records([place]).values():
        each.result(60)
