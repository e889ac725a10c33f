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
    """`partitions` are copies and copies in sync; a topic that is made is there afterwards.

    The brokers `away` do not answer, those that are `unknown` have no address. Offsets are told after `settling`.
    """

    def __init__(self) -> None:
        self.partitions: list[tuple[int, int]] = [(3, 3), (3, 3)]
        self.topic: Exception | None = None
        self.leaders: dict[int, Exception] = {}
        self.settings: Mapping[str, str] | Exception = KEEPING
        self.making: Exception | None = None
        self.made: list[Any] = []
        self.settling: list[Exception] = []
        self.away: set[int] = set()
        self.unknown: set[int] = set()

    def __call__(self, options: Mapping[str, object], **_: object) -> "Brokers | OneBroker":
        number = str(options["bootstrap.servers"]).removeprefix("broker-").removesuffix(":9093")
        return OneBroker(is_away=int(number) in self.away) if number.isdigit() else self

    def poll(self, _timeout_s: float) -> int:
        return 0

    def describe_topics(self, _topics: object, **_: object) -> dict[str, "Future[Any]"]:
        partitions = [
            SimpleNamespace(id=number, replicas=self._nodes(copies), isr=self._nodes(in_sync))
            for number, (copies, in_sync) in enumerate(self.partitions)
        ]
        topic = SimpleNamespace(topic_id="a+/b", partitions=partitions)
        return {"lakewarden-ingest": ended(self.topic or topic)}

    def list_topics(self, name: str = "", **_: object) -> SimpleNamespace:
        error = self.topic.args[0] if isinstance(self.topic, KafkaException) else None
        if error is None and self.topic is not None:
            raise self.topic
        partitions = {
            number: SimpleNamespace(replicas=range(1, copies + 1), isrs=range(1, in_sync + 1))
            for number, (copies, in_sync) in enumerate(self.partitions)
        }
        brokers = {each.id: each for each in self._nodes(3) if each.host}
        return SimpleNamespace(
            brokers=brokers, topics={name: SimpleNamespace(error=error, partitions={} if error else partitions)}
        )

    def _nodes(self, count: int) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(id=number, host="" if number in self.unknown else f"broker-{number}", port=9093)
            for number in range(1, count + 1)
        ]

    def list_offsets(self, asked: Mapping[Any, object], **_: object) -> dict[Any, "Future[Any]"]:
        if self.settling:
            return dict.fromkeys(asked, ended(self.settling.pop()))
        return {each: ended(self.leaders.get(each.partition, SimpleNamespace(offset=7))) for each in asked}

    def describe_configs(self, resources: list[object], **_: object) -> dict[object, "Future[Any]"]:
        if isinstance(self.settings, Exception):
            return {resources[0]: ended(self.settings)}
        return {resources[0]: ended({name: SimpleNamespace(value=value) for name, value in self.settings.items()})}

    def create_topics(self, topics: list[Any], **_: object) -> dict[str, "Future[Any]"]:
        self.made += topics
        self.topic = None
        return {topics[0].topic: ended(self.making)}


class OneBroker:
    """Asked alone, whether it answers."""

    def __init__(self, *, is_away: bool) -> None:
        self._is_away = is_away

    def poll(self, _timeout_s: float) -> int:
        return 0

    def list_topics(self, _topic: str, **_: object) -> None:
        if self._is_away:
            raise failed(KafkaError._TRANSPORT)
