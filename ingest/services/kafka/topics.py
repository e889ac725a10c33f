"""The topic of the contents is looked for, and made if it is missing; its floors are noted in the database."""

import logging
import time
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest.services.statements import run
from lakewarden.config import KafkaLogConfig
from lakewarden.hot.sessions import Lookup
from lakewarden.kafka import SILENT, Trouble
from lakewarden.kafka_topics import END, PAUSE_S, SETTLING, Topic, describe, offsets

logger = logging.getLogger(__name__)

_UNLIMITED: Final = "-1"


class Found(NamedTuple):
    """`ends`: the offset of each partition's next record."""

    topic: Topic
    ends: dict[int, int]


def find_or_make(settings: KafkaLogConfig, *, largest: int, trouble: Trouble) -> Found:
    """`largest`: bytes of a record. Raises KafkaException, TimeoutError."""
    try:
        return _found_or_made(settings, largest=largest, trouble=trouble)
    except (KafkaException, TimeoutError) as error:
        # its frames hold the client, whose end may wait for the name of a broker: not later, on the event loop
        raise error.with_traceback(None) from None


def _found_or_made(settings: KafkaLogConfig, *, largest: int, trouble: Trouble) -> Found:
    options: dict[str, Any] = {**settings.librdkafka, "error_cb": trouble.note}
    admin = AdminClient(options, logger=SILENT)
    deadline, is_made = time.monotonic() + settings.timeout_s, False
    while True:
        try:
            topic = describe(admin, settings.topic, timeout_s=settings.timeout_s)
            return Found(topic, offsets(admin, topic, END, timeout_s=settings.timeout_s))
        except KafkaException as error:
            admin.poll(0)  # what was wrong with the connection
            if error.args[0].code() not in SETTLING or time.monotonic() > deadline:
                raise
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART and not is_made:
                _make(admin, settings, largest)
                is_made = True
                continue
        except TimeoutError:
            admin.poll(0)
            raise
        time.sleep(PAUSE_S)


def _make(admin: AdminClient, settings: KafkaLogConfig, largest: int) -> None:
    """Raises KafkaException, TimeoutError."""
    kept = {
        "cleanup.policy": "delete",
        "retention.ms": _UNLIMITED,
        "retention.bytes": _UNLIMITED,
        "message.timestamp.type": "LogAppendTime",  # how old a record is must not depend on a server's clock
        "max.message.bytes": str(max(largest, 1_048_588)),
        "min.insync.replicas": str(settings.min_in_sync),
    }
    topic = NewTopic(settings.topic, settings.partitions, settings.replicas, config=kept)
    try:
        made = admin.create_topics([topic], operation_timeout=settings.timeout_s)[settings.topic]
        made.result(settings.timeout_s + 1)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another server was faster
            raise
    else:
        logger.info("The topic %s was made in Kafka, for the contents of batches", settings.topic)


async def note_floors(found: Found) -> None:
    """The log takes no references to partitions without floors. Those that are there stay, unless the topic is another
    one: then they begin at its end, because what is below may be deleted already. Raises LogUnavailable.
    """
    ends = sorted(found.ends.items())
    name, identity = found.topic.name, found.topic.id
    given: list[list[object]] = [[number for number, _ in ends], [end for _, end in ends]]
    await run(_NOTE_FLOORS, [[name] * len(ends), [identity] * len(ends), *given])


_NOTE_FLOORS: Final = Lookup("""
    insert into ingest_kafka_floor as f (topic, topic_id, partition, lowest)
    select g.* from unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[]) as g(topic, topic_id, partition, lowest)
    order by g.partition
    on conflict (topic, partition) do update set topic_id = excluded.topic_id, lowest = excluded.lowest
    where f.topic_id is distinct from excluded.topic_id
""")
