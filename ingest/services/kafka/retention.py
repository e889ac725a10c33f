"""Deletes from Kafka what the log does not refer to any more.

A server may have been frozen since it wrote a record, and refer to it only when it goes on. So the statement that
appends takes no reference below a floor, which is raised first, and only then the lowest reference is looked for.
"""

import logging
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from django.db import OperationalError, connection, transaction

from lakewarden.config import KafkaLogConfig
from lakewarden.kafka import SILENT, Trouble
from lakewarden.prepared_statements import execute, fetch

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30.0
_PATIENCE: Final = "1s"  # writers queue up behind a waiting lock, so they wait no longer than this


class _Partition(NamedTuple):
    """Its first record is at `begin`; those before `old` are older than what is kept."""

    number: int
    begin: int
    old: int


def delete_flushed(settings: KafkaLogConfig, *, kept: timedelta) -> int:
    """Delete records that are older than `kept` and belong to nothing that waits; returns how many are gone.

    None of them if Kafka does not answer, or writers would have to wait: this is logged, and done the next time.
    """
    trouble = Trouble()
    options: dict[str, Any] = {**settings.librdkafka, "error_cb": trouble.note}
    try:
        found = _partitions(settings.topic, options, before=datetime.now(UTC) - kept)
        _raise_floors(settings.topic, found)
        lowest = dict(fetch(_LOWEST, [settings.topic]))
        upto = {each: min(each.old, lowest.get(each.number, each.old)) for each in found}
        return _delete(settings.topic, options, upto)
    except (KafkaException, TimeoutError) as error:
        reason = trouble.reason_of(error, patience_s=_TIMEOUT_S)
        logger.warning("Contents in Kafka are not deleted now: %s", reason)
    except OperationalError as error:
        logger.info("Contents in Kafka are deleted later: %s", str(error).strip())
    return 0


def _partitions(topic: str, options: dict[str, Any], *, before: datetime) -> list[_Partition]:
    """Raises KafkaException."""
    # it joins no group: the name is only required
    asking = Consumer({**options, "group.id": "lakewarden-ingest", "enable.auto.commit": False}, logger=SILENT)
    with closing(asking) as consumer:
        known = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if known.error is not None:
            if known.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return []  # nothing was received yet
            raise KafkaException(known.error)
        ends = {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_TIMEOUT_S)
            for number in sorted(known.partitions)
        }
        moment = int(before.timestamp() * 1000)
        asked = [TopicPartition(topic, number, moment) for number in ends]
        found = {each.partition: each.offset for each in consumer.offsets_for_times(asked, timeout=_TIMEOUT_S)}
    # there is no offset where all records are older
    return [
        _Partition(number, begin, min(found[number], end) if found[number] >= 0 else end)
        for number, (begin, end) in ends.items()
    ]


def _raise_floors(topic: str, found: list[_Partition]) -> None:
    """Whoever appends now is waited for: the next ones see the new floors. Raises OperationalError after a while."""
    known = dict(fetch(_FLOORS, [topic]))
    higher = [each for each in found if each.old > known.get(each.number, 0)]
    if not higher:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"set local lock_timeout = '{_PATIENCE}'")
        cursor.execute("lock table ingest_log_head in share mode")
        execute(_RAISE, [topic, [each.number for each in higher], [each.old for each in higher]])


def _delete(topic: str, options: dict[str, Any], upto: dict[_Partition, int]) -> int:
    """Raises KafkaException, TimeoutError."""
    chosen = {each.number: (each.begin, end) for each, end in upto.items() if end > each.begin}
    if not chosen:
        return 0
    admin = AdminClient(options, logger=SILENT)
    asked = [TopicPartition(topic, number, end) for number, (_, end) in chosen.items()]
    for each in admin.delete_records(asked, request_timeout=_TIMEOUT_S).values():
        each.result(_TIMEOUT_S + 1)
    return sum(end - begin for begin, end in chosen.values())


_FLOORS: Final = "select partition, lowest from ingest_kafka_floor where topic = %s"
_RAISE: Final = """
    insert into ingest_kafka_floor as f (topic, partition, lowest)
    select %s::text, g.partition, g.lowest
    from unnest(%s::int[], %s::bigint[]) as g(partition, lowest)
    on conflict (topic, partition) do update set lowest = excluded.lowest
    where f.lowest < excluded.lowest
"""
_LOWEST: Final = """
    select (r.reference ->> 'partition')::int, min((r.reference ->> 'offset')::bigint)
    from ingest_log_head h
    join ingest_batch b on b.warehouse_id = h.warehouse_id and b.position > h.flushed_position
    cross join lateral (
        select case when b.encoding >= 2 then convert_from(b.content, 'UTF8')::jsonb end as reference
    ) r
    where r.reference ->> 'topic' = %s group by 1
"""
