"""Checks the Kafka in which contents of change data wait, if it is configured: reachable, and its topic keeps them."""

from collections.abc import Iterator
from typing import Any, Final

from lakewarden.config import Config, KafkaLogConfig
from lakewarden.doctor.findings import Finding, fail, ok, warn

_NAME: Final = "Kafka of ingest"
_TIMEOUT_S: Final = 10.0
_UNLIMITED: Final = "-1"


def examine(settings: Config) -> Iterator[Finding]:
    kafka = settings.ingest.kafka
    if kafka is None:
        return
    from confluent_kafka import KafkaException  # noqa: PLC0415 only for those who use Kafka

    from lakewarden.kafka import Trouble  # noqa: PLC0415

    trouble = Trouble()
    try:
        found = _settings_of_topic(kafka, trouble)
    except (KafkaException, TimeoutError) as error:
        yield fail(
            _NAME,
            trouble.reason_of(error, patience_s=_TIMEOUT_S),
            fix="correct LAKEWARDEN__INGEST__KAFKA__…, or what is wrong there; batches are refused meanwhile, or go to "
            "the fallback file",
        )
        return
    if found is None:
        yield ok(_NAME, f"is reachable; the topic {kafka.topic!r} is made with the first batch")
    else:
        yield from _judged(kafka, found, largest=settings.ingest.max_message_bytes)


def _settings_of_topic(kafka: KafkaLogConfig, trouble: Any) -> dict[str, str] | None:  # noqa: ANN401
    """None: it is not there. Raises KafkaException, TimeoutError."""
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415
    from confluent_kafka.admin._config import ConfigResource  # noqa: PLC0415

    from lakewarden.kafka import SILENT  # noqa: PLC0415

    options: dict[str, Any] = {**kafka.librdkafka, "error_cb": trouble.note}
    admin = AdminClient(options, logger=SILENT)
    resource = ConfigResource(ConfigResource.Type.TOPIC, kafka.topic)
    try:
        found = admin.describe_configs([resource], request_timeout=_TIMEOUT_S)[resource].result(_TIMEOUT_S + 1)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        admin.poll(0)  # what was wrong with the connection
        raise
    return {name: each.value for name, each in found.items()}


def _judged(kafka: KafkaLogConfig, found: dict[str, str], *, largest: int) -> Iterator[Finding]:
    topic = f"the topic {kafka.topic!r}"
    wanted = {"cleanup.policy": "delete", "retention.ms": _UNLIMITED, "retention.bytes": _UNLIMITED}
    wrong = [f"{name}={found[name]}" for name, value in wanted.items() if found.get(name, value) != value]
    if wrong:
        yield warn(
            _NAME,
            f"{topic} has {', '.join(wrong)}: Kafka may delete contents that are in no table yet",
            fix=f"set {', '.join(f'{name}={value}' for name, value in wanted.items())}; what is in tables is deleted "
            "by the worker",
        )
    if int(found.get("max.message.bytes", largest)) < largest:
        yield warn(
            _NAME,
            f"{topic} takes {found['max.message.bytes']} bytes, messages may have {largest}: some batches are refused",
            fix="raise the topic's max.message.bytes, or lower LAKEWARDEN__INGEST__MAX_MESSAGE_BYTES",
        )
    if not wrong:
        yield ok(_NAME, f"is reachable; {topic} keeps contents until they are in tables")
