"""Asks each broker of the Kafka of contents by itself: without a quorum, the rest repeat what they knew before."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from lakewarden.config import KafkaLogConfig
from lakewarden.doctor.findings import Finding, fail, ok, warn

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from lakewarden.kafka_topics import Topic

NAME: Final = "Kafka of ingest"
NOT_TO_BE_MADE: Final[dict[str, Any]] = {"allow.auto.create.topics": False}
_AT_ONCE: Final = 16
"""Brokers that are asked at the same time."""
BRING_BACK: Final = "bring the brokers back; batches are refused meanwhile, or go to the fallback file"


def find(
    admin: "AdminClient", options: Mapping[str, Any], kafka: KafkaLogConfig, *, timeout_s: float
) -> "tuple[AdminClient, Topic]":
    """The topic, and the client that has found it. The library may try only brokers that are away, and never the
    one that is left: so each is asked alone, too. Raises KafkaException.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    from lakewarden.kafka import LATE, SILENT  # noqa: PLC0415
    from lakewarden.kafka_topics import look  # noqa: PLC0415

    def ask(client: AdminClient) -> "tuple[AdminClient, Topic] | KafkaException":
        try:
            return client, look(client, kafka.topic, timeout_s=timeout_s / 2)
        except KafkaException as error:
            return error

    first = ask(admin)
    if isinstance(first, KafkaException) and first.args[0].code() in LATE and len(kafka.bootstrap_servers) > 1:
        alone = [AdminClient({**options, "bootstrap.servers": each}, logger=SILENT) for each in kafka.bootstrap_servers]
        with ThreadPoolExecutor(min(len(alone), _AT_ONCE)) as threads:
            first = next((each for each in threads.map(ask, alone) if isinstance(each, tuple)), first)
    if isinstance(first, KafkaException):
        raise first
    return first


def judged_in_sync(topic: "Topic", away: Mapping[int, str], needed: int) -> Iterator[Finding]:
    """Without a quorum of controllers nobody notes which copies are in sync, so each broker was asked itself."""
    behind = {each for partition in topic.partitions for each in partition.copies - partition.in_sync}
    missing = sorted(away.keys() | behind)
    if not missing:
        return
    named = ", ".join(_named(topic, each, away.get(each)) for each in missing)
    fewest = min(len(each.in_sync - away.keys()) for each in topic.partitions)
    if fewest < needed:
        yield fail(
            NAME,
            f"a partition of the topic {topic.name!r} has {fewest} copies in sync, and takes nothing below {needed} "
            f"(min.insync.replicas): {named}",
            fix=BRING_BACK,
        )
    else:
        yield warn(
            NAME,
            f"the topic {topic.name!r} has fewer copies in sync than it should: {named}",
            fix="bring the broker back before another one fails",
        )


def _named(topic: "Topic", number: int, why: str | None) -> str:
    address = f" ({topic.brokers[number]})" if number in topic.brokers else ""
    return f"broker {number}{address} {'is behind' if why is None else why}"


def away_from(kafka: KafkaLogConfig, topic: "Topic", *, timeout_s: float) -> dict[int, str]:
    """Why each broker that should have copies does not answer, by its number."""
    numbers = sorted({each for partition in topic.partitions for each in partition.copies})
    with ThreadPoolExecutor(min(len(numbers), _AT_ONCE)) as threads:
        said = threads.map(lambda number: _silence(kafka, topic.brokers.get(number), timeout_s), numbers)
        return {number: why for number, why in zip(numbers, said, strict=True) if why is not None}


def _silence(kafka: KafkaLogConfig, address: str | None, timeout_s: float) -> str | None:
    """None: it answers."""
    from confluent_kafka import KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    from lakewarden.kafka import SILENT, Trouble  # noqa: PLC0415

    if address is None:
        return "is away"
    trouble = Trouble(kafka)
    options = {**kafka.librdkafka, **NOT_TO_BE_MADE, "bootstrap.servers": address, "error_cb": trouble.note}
    admin = AdminClient(options, logger=SILENT)
    try:
        admin.list_topics(kafka.topic, timeout=timeout_s / 2)
    except KafkaException as error:
        admin.poll(0)
        refusal = trouble.refusal
        return "does not answer" if refusal is None else f"refuses: {trouble.reason_of(error, patience_s=timeout_s)}"
    return None


def unmade(kafka: KafkaLogConfig, *, timeout_s: float) -> Finding:
    """Of a topic that is not there yet: there must be as many brokers as it will have copies."""
    from confluent_kafka import KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    from lakewarden.kafka import SILENT  # noqa: PLC0415
    from lakewarden.kafka_topics import address  # noqa: PLC0415

    options = {**kafka.librdkafka, **NOT_TO_BE_MADE}
    try:
        known = AdminClient(options, logger=SILENT).list_topics(timeout=timeout_s).brokers
        addresses = [address(str(each.host), each.port) for each in known.values()]
    except KafkaException:  # so many are away that it did not come to one that is left
        addresses = list(kafka.bootstrap_servers)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        said = list(threads.map(lambda each: _silence(kafka, each, timeout_s), addresses))
    answering = sum(each is None for each in said)
    if answering < kafka.replicas:
        return fail(
            NAME,
            f"the topic {kafka.topic!r} is not there and cannot be made with {kafka.replicas} copies: {answering} "
            "brokers answer",
            fix="bring the brokers back, or set LAKEWARDEN__INGEST__KAFKA__REPLICAS and MIN_IN_SYNC to what is meant",
        )
    return ok(NAME, f"is reachable; the topic {kafka.topic!r} is made with the first batch")
