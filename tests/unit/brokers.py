"""Stands for the brokers of Kafka, as an AdminClient asks them: each answer may be an exception."""

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

KEEPING: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "2",
    "max.message.bytes": "999999999",
}
"""The settings of a topic that loses nothing."""


def failed(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


def ended(value: object) -> "Future[Any]":
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class Brokers:
    """`partitions` are copies and copies in sync; a topic that is made is there afterwards."""

    def __init__(self) -> None:
        self.partitions: list[tuple[int, int]] = [(3, 3), (3, 3)]
        self.topic: Exception | None = None
        self.leaders: dict[int, Exception] = {}
        self.settings: Mapping[str, str] | Exception = KEEPING
        self.making: Exception | None = None
        self.made: list[Any] = []

    def __call__(self, _options: Mapping[str, object], **_: object) -> "Brokers":
        return self

    def poll(self, _timeout_s: float) -> int:
        return 0

    def describe_topics(self, _topics: object, **_: object) -> dict[str, "Future[Any]"]:
        partitions = [
            SimpleNamespace(id=number, replicas=[0] * copies, isr=[0] * in_sync)
            for number, (copies, in_sync) in enumerate(self.partitions)
        ]
        topic = SimpleNamespace(topic_id="a+/b", partitions=partitions)
        return {"lakewarden-ingest": ended(self.topic or topic)}

    def list_offsets(self, asked: Mapping[Any, object], **_: object) -> dict[Any, "Future[Any]"]:
        return {each: ended(self.leaders.get(each.partition, SimpleNamespace(offset=7))) for each in asked}

    def describe_configs(self, resources: list[object], **_: object) -> dict[object, "Future[Any]"]:
        if isinstance(self.settings, Exception):
            return {resources[0]: ended(self.settings)}
        return {resources[0]: ended({name: SimpleNamespace(value=value) for name, value in self.settings.items()})}

    def create_topics(self, topics: list[Any], **_: object) -> dict[str, "Future[Any]"]:
        self.made += topics
        self.topic = None
        return {topics[0].topic: ended(self.making)}
