"""Checks the Kafka in which contents of change data wait, if it is configured: it answers, and its topic keeps them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import psycopg

from lakewarden.config import Config, KafkaLogConfig
from lakewarden.doctor.findings import Finding, State, fail, ok, warn
from lakewarden.doctor.kafka_brokers import BRING_BACK, NAME, NOT_TO_BE_MADE, away_from, find, judged_in_sync, unmade

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from lakewarden.kafka import Trouble
    from lakewarden.kafka_topics import Topic

_TIMEOUT_S: Final = 10.0
_UNLIMITED: Final = "-1"
_KEPT: Final = {"cleanup.policy": "delete", "retention.ms": _UNLIMITED, "retention.bytes": _UNLIMITED}


def examine(settings: Config) -> Iterator[Finding]:
    kafka = settings.ingest.kafka
    if kafka is None:
        return
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 only for those who use Kafka
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    from lakewarden.kafka import SILENT, Trouble  # noqa: PLC0415

    trouble = Trouble(kafka)
    options = {**kafka.librdkafka, **NOT_TO_BE_MADE, "error_cb": trouble.note}
    admin: AdminClient | None = None
    try:
        admin = AdminClient(options, logger=SILENT)
        admin, topic = find(admin, options, kafka, timeout_s=_TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            yield unmade(kafka, timeout_s=_TIMEOUT_S)
            return
        if admin is not None:
            admin.poll(0)  # what was wrong with the connection
        yield fail(
            NAME,
            trouble.reason_of(error, patience_s=_TIMEOUT_S),
            fix="correct LAKEWARDEN__INGEST__KAFKA__…, or what is wrong there; batches are refused meanwhile, or go to "
            "the fallback file",
        )
        return
    found = [*_copies(kafka, topic), *_settings(settings, admin, topic, trouble)]
    if all(each.state is not State.FAIL for each in found):
        found += _leaders(admin, topic, trouble)
    yield from found
    if not found:
        yield ok(
            NAME, f"each partition of the topic {kafka.topic!r} answers, and keeps contents until they are in tables"
        )


def _leaders(admin: "AdminClient", topic: "Topic", trouble: "Trouble") -> Iterator[Finding]:
    """Brokers without a quorum answer what they knew before, so the leader of each partition is asked for an offset."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    from lakewarden.kafka_topics import END, offsets  # noqa: PLC0415

    for each in topic.partitions:
        try:
            offsets(admin, topic._replace(partitions=(each,)), END, timeout_s=_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            yield fail(
                NAME,
                f"the leader of partition {each.number} of the topic {topic.name!r} does not answer: "
                f"{trouble.reason_of(error, patience_s=_TIMEOUT_S)}",
                fix=BRING_BACK,
            )
            return  # the others would be waited for as long


def _copies(kafka: KafkaLogConfig, topic: "Topic") -> Iterator[Finding]:
    fewest = min(len(each.copies) for each in topic.partitions)
    if fewest < kafka.replicas:
        yield warn(
            NAME,
            f"the topic {topic.name!r} has {fewest} of {kafka.replicas} copies of each record",
            fix="reassign its partitions to more brokers, or set LAKEWARDEN__INGEST__KAFKA__REPLICAS to what is meant",
        )


def _settings(settings: Config, admin: "AdminClient", topic: "Topic", trouble: "Trouble") -> Iterator[Finding]:
    from confluent_kafka import KafkaException  # noqa: PLC0415

    from lakewarden.kafka import DENIED  # noqa: PLC0415

    kafka = settings.ingest.kafka
    if kafka is None:
        return
    away = away_from(kafka, topic, timeout_s=_TIMEOUT_S)
    holders = {broker for partition in topic.partitions for broker in partition.copies}
    try:
        found = _settings_of(admin, topic.name, asked=min((holders & topic.brokers.keys()) - away.keys(), default=None))
    except (KafkaException, TimeoutError) as error:
        # what the topic takes is not known: what is configured is as good a guess as any
        judged = list(judged_in_sync(topic, away, kafka.min_in_sync))
        yield from judged
        if any(each.state is State.FAIL for each in judged):
            return
        is_denied = isinstance(error, KafkaException) and error.args[0].code() in DENIED
        yield warn(
            NAME,
            f"the settings of the topic {topic.name!r} cannot be read: "
            f"{trouble.reason_of(error, patience_s=_TIMEOUT_S)}",
            fix="allow the user DESCRIBE_CONFIGS on the topic" if is_denied else "look at the brokers and controllers",
        )
        return
    needed = int(found.get("min.insync.replicas", "1"))
    yield from judged_in_sync(topic, away, needed)
    yield from _judged_least(kafka, topic, needed)
    yield from _judged_keeping(settings, topic.name, found)
    largest = settings.ingest.max_message_bytes
    if int(found.get("max.message.bytes", largest)) < largest:
        yield warn(
            NAME,
            f"the topic {topic.name!r} takes {found['max.message.bytes']} bytes, messages may have {largest}: some "
            "batches are refused",
            fix="raise the topic's max.message.bytes, or lower LAKEWARDEN__INGEST__MAX_MESSAGE_BYTES",
        )


def _settings_of(admin: "AdminClient", topic: str, *, asked: int | None) -> dict[str, str]:
    """Of the broker `asked`: any could be one that is away. Raises KafkaException, TimeoutError."""
    from confluent_kafka.admin._config import ConfigResource  # noqa: PLC0415

    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    whom = {} if asked is None else {"broker": asked}
    found = admin.describe_configs([resource], request_timeout=_TIMEOUT_S, **whom)[resource].result(_TIMEOUT_S + 1)
    return {name: each.value for name, each in found.items()}


def _judged_least(kafka: KafkaLogConfig, topic: "Topic", needed: int) -> Iterator[Finding]:
    if needed < kafka.min_in_sync:
        yield warn(
            NAME,
            f"the topic {topic.name!r} has min.insync.replicas={needed}: what is acknowledged may be on fewer brokers "
            f"than {kafka.min_in_sync}",
            fix=f"set min.insync.replicas={kafka.min_in_sync} on the topic, or set "
            "LAKEWARDEN__INGEST__KAFKA__MIN_IN_SYNC to what is meant",
        )


def _judged_keeping(settings: Config, topic: str, found: dict[str, str]) -> Iterator[Finding]:
    wrong = [f"{name}={found[name]}" for name, value in _KEPT.items() if found.get(name, value) != value]
    if wrong:
        retention_ms = int(found.get("retention.ms", _UNLIMITED))
        oldest = _age_of_oldest(settings)
        fix = (
            f"set {', '.join(f'{name}={value}' for name, value in _KEPT.items())}; what is in tables is deleted by the "
            "worker"
        )
        if oldest is not None and 0 <= retention_ms <= oldest / timedelta(milliseconds=1):
            said = f"the topic {topic!r} has {', '.join(wrong)}, and a batch waits for {oldest.total_seconds():.0f} s"
            yield fail(NAME, f"{said}: its content may be gone", fix=fix)
        else:
            said = f"the topic {topic!r} has {', '.join(wrong)}"
            yield warn(NAME, f"{said}: Kafka may delete contents that are in no table yet", fix=fix)
    if found.get("message.timestamp.type", "LogAppendTime") != "LogAppendTime":
        yield warn(
            NAME,
            f"the topic {topic!r} has message.timestamp.type={found['message.timestamp.type']}: how long contents stay "
            "depends on the clocks of servers",
            fix="set message.timestamp.type=LogAppendTime on the topic",
        )


def _age_of_oldest(settings: Config) -> timedelta | None:
    """Of the contents that are in no table; None: nothing waits, or the database's own findings say why."""
    if settings.database.url is None:
        return None
    url, patience_s = settings.database.url.get_secret_value(), settings.database.connect_timeout_s
    try:
        with psycopg.connect(url, connect_timeout=patience_s, autocommit=True) as connection:
            row = connection.execute(_OLDEST).fetchone()
    except psycopg.Error:
        return None
    return None if row is None else row[0]


_OLDEST: Final = """
    select now() - min(b.received_at)
    from ingest_log_head h
    join ingest_batch b on b.warehouse_id = h.warehouse_id and b.position > h.flushed_position and b.encoding >= 2
"""
