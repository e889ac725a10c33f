"""Deletes from Kafka what the log does not refer to any more.

A server may have been frozen since it wrote a record, and refer to it only when it goes on. So the statement that
appends takes no reference below a floor, which is raised first, and only then the lowest reference is looked for.
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from django.db import OperationalError, connection, transaction

from lakewarden.config import KafkaLogConfig
from lakewarden.kafka import SILENT, Trouble
from lakewarden.kafka_topics import BEGIN, END, Topic, describe, offsets
from lakewarden.prepared_statements import execute, fetch

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30.0
_PATIENCE: Final = "1s"  # writers queue up behind a waiting lock, so they wait no longer than this


class _Partition(NamedTuple):
    """Its records are from `begin` to before `end`; those before `old` are older than what is kept."""

    number: int
    begin: int
    old: int
    end: int


def delete_flushed(settings: KafkaLogConfig, *, kept: timedelta) -> int:
    """Delete records that are older than `kept` and belong to nothing that waits; returns how many are gone.

    None of them if Kafka does not answer, or writers would have to wait: this is logged, and done the next time.
    """
    trouble = Trouble(settings)
    options: dict[str, Any] = {**settings.librdkafka, "error_cb": trouble.note}
    try:
        admin = AdminClient(options, logger=SILENT)
        topic = describe(admin, settings.topic, timeout_s=_TIMEOUT_S)
        found = _partitions(admin, topic, before=datetime.now(UTC) - kept)
        floors = _raised_floors(topic, found)
        lowest = dict(fetch(_LOWEST, [topic.name]))
        upto = {each: min(floors.get(each.number, 0), lowest.get(each.number, each.old), each.old) for each in found}
        return _delete(admin, topic, upto)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return 0  # nothing was received yet
        reason = trouble.reason_of(error, patience_s=_TIMEOUT_S)
        logger.warning("Contents in Kafka are not deleted now: %s", reason)
    except OperationalError as error:
        logger.info("Contents in Kafka are deleted later: %s", str(error).strip())
    return 0


def _partitions(admin: AdminClient, topic: Topic, *, before: datetime) -> list[_Partition]:
    """Raises KafkaException, TimeoutError."""
    moment = int(before.timestamp() * 1000)
    begins, later, ends = (
        offsets(admin, topic, each, timeout_s=_TIMEOUT_S) for each in (BEGIN, OffsetSpec.for_timestamp(moment), END)
    )
    # there is no offset where all records are older
    return [
        _Partition(number, begins[number], min(later[number], end) if later[number] >= 0 else end, end)
        for number, end in ends.items()
    ]


def _raised_floors(topic: Topic, found: list[_Partition]) -> dict[int, int]:
    """Whoever appends now is waited for: the next ones see the new floors. Raises OperationalError after a while."""
    known = dict(fetch(_FLOORS, [topic.name, topic.id]))
    # of another topic with this name, nothing is known: its floors begin at its end
    raised = {each.number: each.old if each.number in known else each.end for each in found}
    higher = {number: lowest for number, lowest in raised.items() if lowest > known.get(number, -1)}
    if not higher:
        return known
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"set local lock_timeout = '{_PATIENCE}'")
        cursor.execute("lock table ingest_log_head in share mode")
        execute(_RAISE, [topic.name, topic.id, list(higher), list(higher.values())])
    return dict(fetch(_FLOORS, [topic.name, topic.id]))


def _delete(admin: AdminClient, topic: Topic, upto: dict[_Partition, int]) -> int:
    """Raises KafkaException, TimeoutError."""
    chosen = {each.number: (each.begin, end) for each, end in upto.items() if end > each.begin}
    # offsets of another topic with this name would be those of other records
    if not chosen or describe(admin, topic.name, timeout_s=_TIMEOUT_S).id != topic.id:
        return 0
    asked = [TopicPartition(topic.name, number, end) for number, (_, end) in chosen.items()]
    for each in admin.delete_records(asked, request_timeout=_TIMEOUT_S).values():
        each.result(_TIMEOUT_S + 1)
    return sum(end - begin for begin, end in chosen.values())


_FLOORS: Final = "select partition, lowest from ingest_kafka_floor where topic = %s and topic_id = %s"
_RAISE: Final = """
    insert into ingest_kafka_floor as f (topic, topic_id, partition, lowest)
    select %s::text, %s::text, g.partition, g.lowest
    from unnest(%s::int[], %s::bigint[]) as g(partition, lowest)
    order by g.partition
    on conflict (topic, partition) do update set topic_id = excluded.topic_id, lowest = excluded.lowest
    where f.lowest < excluded.lowest or f.topic_id is distinct from excluded.topic_id
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
