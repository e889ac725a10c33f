"""Independent readers of what arrived: confluent-kafka and nats-py, none of our own code."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

import nats
from confluent_kafka import Consumer, TopicPartition
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DeliverPolicy

from tests.servers.kafka import KafkaServer

Events = list[dict[str, Any]]


def consumed_from_topic(broker: KafkaServer, topic: str, partitions: Sequence[int]) -> Events:
    """All records with a key that can be read, in the order of each partition."""
    found: Events = []
    with closing(
        Consumer({"bootstrap.servers": broker.plain, "group.id": str(uuid4()), "enable.auto.commit": False})
    ) as consumer:
        for number in partitions:
            place, offset = TopicPartition(topic, number, 0), 0
            _, end = consumer.get_watermark_offsets(place, timeout=60)
            consumer.assign([place])
            while offset < end:
                record = consumer.poll(30)
                assert record is not None, f"partition {number} ends at {end}, and nothing came after {offset}"
                assert record.error() is None, record.error()
                offset = (record.offset() or 0) + 1
                if record.key() is not None:
                    found.append(json.loads(record.value() or b""))
    return found


def with_stream(url: str, work: Callable[[JetStreamContext], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    async def connected() -> Any:
        client = await nats.connect(url, allow_reconnect=False, **options)
        try:
            return await work(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(connected())


def consumed_from_stream(url: str, stream: str) -> Events:
    """All that is stored, in its order."""

    async def read(context: JetStreamContext) -> Events:
        count = (await context.stream_info(stream)).state.messages
        config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
        inbox = await context.pull_subscribe("", stream=stream, config=config)
        found: Events = []
        while len(found) < count:
            for each in await inbox.fetch(min(500, count - len(found)), timeout=20):
                await each.ack()
                found.append(json.loads(each.data) | {"subject of the message": each.subject})
        return found

    return list(with_stream(url, read))
