"""What brokers say of a topic: its id, its partitions, and offsets, for which the leader of each partition is asked."""

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

BEGIN: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
END: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]


SETTLING: Final = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._NOENT,  # noqa: SLF001 its public name: no partition has a leader
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}
"""What brokers say of a topic that was made just now, or of a partition with a new leader: each of them hears of it at
another moment.
"""
PAUSE_S: Final = 0.2


class Partition(NamedTuple):
    """The numbers of the brokers that have copies, and of those whose copies are in sync."""

    number: int
    copies: frozenset[int]
    in_sync: frozenset[int]


class Topic(NamedTuple):
    """One that was made anew under the same name has another `id`, which is written as in Kafka's own tools.

    `brokers`, only from `look`: `host:port` by number; one that is known to be away has none.
    """

    name: str
    id: str
    partitions: tuple[Partition, ...]
    brokers: Mapping[int, str] = MappingProxyType({})


def describe(admin: AdminClient, name: str, *, timeout_s: float) -> Topic:
    """Raises KafkaException, also for one that is missing, and TimeoutError."""
    asked = admin.describe_topics(TopicCollection([name]), request_timeout=timeout_s)
    found = asked[name].result(timeout_s + 1)
    partitions = [
        Partition(each.id, frozenset(node.id for node in each.replicas), frozenset(node.id for node in each.isr))
        for each in sorted(found.partitions, key=lambda partition: partition.id)
    ]
    return Topic(name, str(found.topic_id).translate(_URL_SAFE), tuple(partitions))


def look(admin: AdminClient, name: str, *, timeout_s: float) -> Topic:
    """As any broker that answers knows it, without its id: `describe` may ask one that is away, while nobody knows so.

    Makes no topic if the client may not (`allow.auto.create.topics`). Raises KafkaException.
    """
    known = admin.list_topics(name, timeout=timeout_s)
    found = known.topics[name]
    if found.error is not None:
        raise KafkaException(found.error)
    partitions = [
        Partition(number, frozenset(each.replicas), frozenset(each.isrs))
        for number, each in sorted(found.partitions.items())
    ]
    brokers = {number: address(str(each.host), each.port) for number, each in known.brokers.items()}
    return Topic(name, "", tuple(partitions), brokers)


def address(host: str, port: int) -> str:
    """As `bootstrap.servers` takes it, also for one of IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def offsets(admin: AdminClient, topic: Topic, spec: OffsetSpec, *, timeout_s: float) -> dict[int, int]:
    """By partition; -1 where no record is as `spec` says. Waits for leaders of partitions that were made just now.

    Raises KafkaException, TimeoutError.
    """
    asked = {TopicPartition(topic.name, each.number): spec for each in topic.partitions}
    deadline = time.monotonic() + timeout_s
    while True:
        waiting = admin.list_offsets(asked, request_timeout=timeout_s)
        try:
            return {each.partition: found.result(timeout_s + 1).offset for each, found in waiting.items()}
        except KafkaException as error:
            if error.args[0].code() not in SETTLING or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_S)


_URL_SAFE: Final = str.maketrans("+/", "-_")
