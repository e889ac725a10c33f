"""Topics of contents, and an independent look at what is in them."""

import time
from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID, uuid4

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from django.db import connection

from ingest.references import IN_KAFKA, Reference, unpack
from lakewarden.config import KafkaLogConfig
from lakewarden.kafka_topics import END, describe, offsets


class Brokers(Protocol):
    """`plain` takes everybody: `host:port`, separated by commas."""

    plain: str


def settings_of(broker: Brokers, **changed: Any) -> KafkaLogConfig:
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


def records_of(settings: KafkaLogConfig, broker: Brokers) -> dict[tuple[int, int], bytes]:
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


def logged_contents(
    warehouse_id: UUID, settings: KafkaLogConfig, broker: Brokers, *, after: int = 0
) -> list[tuple[int, bytes]]:
    """Number and content of all batches of the log with a higher number than `after`."""
    kept = records_of(settings, broker)
    return [(number, kept[each.partition, each.offset]) for number, each in references(warehouse_id) if number > after]


def make_topic(settings: KafkaLogConfig, broker: Brokers, config: Mapping[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.plain})
    topic = NewTopic(settings.topic, settings.partitions, 1, config=dict(config))
    admin.create_topics([topic])[settings.topic].result(60)
    await_known(admin, settings.topic, is_there=True)
    offsets(admin, describe(admin, settings.topic, timeout_s=60), END, timeout_s=120)


def await_known(admin: AdminClient, topic: str, *, is_there: bool) -> None:
    """Brokers hear of it from the controller, after it was made or deleted."""
    deadline = time.monotonic() + 120
    while (topic in admin.list_topics(timeout=60).topics) != is_there:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def topic_id(settings: KafkaLogConfig, broker: Brokers) -> str:
    return describe(AdminClient({"bootstrap.servers": broker.plain}), settings.topic, timeout_s=60).id


def delete_topic(settings: KafkaLogConfig, broker: Brokers) -> None:
    """It is gone for this broker when this returns."""
    admin = AdminClient({"bootstrap.servers": broker.plain})
    admin.delete_topics([settings.topic])[settings.topic].result(60)
    await_known(admin, settings.topic, is_there=False)


def make_anew(settings: KafkaLogConfig, broker: Brokers) -> None:
    first = topic_id(settings, broker)
    delete_topic(settings, broker)
    make_topic(settings, broker, {})
    assert topic_id(settings, broker) != first


def delete_upto(settings: KafkaLogConfig, broker: Brokers, reference: Reference) -> None:
    """The record, and all before it."""
    place = TopicPartition(settings.topic, reference.partition, reference.offset + 1)
    admin = AdminClient({"bootstrap.servers": broker.plain})
    for each in admin.delete_records([place]).values():
        each.result(60)
