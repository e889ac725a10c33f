"""Writes contents to Kafka: idempotently, acknowledged by all replicas in sync, beside the event loop."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest.references import ID_HEADER, Reference
from ingest.services.log import Batch, Request
from ingest.services.statements import LogUnavailable, Unstorable
from lakewarden import config
from lakewarden.config import KafkaLogConfig
from lakewarden.ids import new_id
from lakewarden.kafka import OF_THE_MESSAGE, SILENT, Trouble

logger = logging.getLogger(__name__)

_HEADERS_BYTES: Final = 64 * 1024
_POLL_S: Final = 1.0
_PAUSE_S: Final = 1.0
_UNLIMITED: Final = "-1"

_Stored = tuple[int, int]
"""Partition and offset."""


class Records:
    """The one producer of this process. A thread of its own hears what became of the records."""

    def __init__(self, settings: KafkaLogConfig, *, largest: int) -> None:
        """`largest`: bytes of the largest content."""
        self._settings = settings
        self._largest = largest + _HEADERS_BYTES
        self._trouble = Trouble()
        self._producer: Producer | None = None
        self._starting: asyncio.Future[Producer] | None = None
        self._is_gone = False

    async def add(self, warehouse_id: UUID, contents: Sequence[Batch | Request]) -> list[Reference | Unstorable]:
        """Where each of them is now, or why it alone cannot be stored. Raises LogUnavailable: then nothing refers to
        what may have been written.
        """
        producer = await self._ready()
        records = [_record(warehouse_id, each) for each in contents]
        found = await self._written(producer, records)
        if len(records) > 1:
            # a broker refuses records by batches, because of one of them: each of these is sent alone
            for number, each in enumerate(found):
                if isinstance(each, KafkaError) and each.code() in OF_THE_MESSAGE:
                    (found[number],) = await self._written(producer, [records[number]])
        self._ensure_none_failed(found)
        return [self._reference(record, each) for record, each in zip(records, found, strict=True)]

    async def ask_whether_it_is_back(self) -> None:
        """After a failure, write an empty record. Raises LogUnavailable."""
        if self._is_gone:
            self._ensure_none_failed(await self._written(await self._ready(), [{"value": b""}]))

    def close(self) -> None:
        """Nothing waits by then: whoever adds, waits for it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(_PAUSE_S)

    async def _written(self, producer: Producer, records: Sequence[dict[str, Any]]) -> list[_Stored | KafkaError]:
        group = _Group(len(records))
        for number, record in enumerate(records):
            try:
                producer.produce(self._settings.topic, on_delivery=partial(group.end, number), **record)
            except KafkaException as error:
                group.end(number, error.args[0])
            except BufferError:
                group.end(number, KafkaError(KafkaError._QUEUE_FULL))  # noqa: SLF001 its public name
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.timeout_s + 5):
                return await group.outcomes
        raise self._unavailable("Kafka did not answer in time")

    def _ensure_none_failed(self, found: Sequence[_Stored | KafkaError]) -> None:
        failed = [each for each in found if isinstance(each, KafkaError) and each.code() not in OF_THE_MESSAGE]
        if not failed:
            self._is_gone = False
            self._trouble.forget()
            return
        if any(each.fatal() for each in failed):
            self._producer = None  # the next group has a new one
        raise self._unavailable(self._trouble.reason(failed[0], patience_s=self._settings.timeout_s))

    def _unavailable(self, reason: str) -> LogUnavailable:
        self._is_gone = True
        return LogUnavailable(reason)

    def _reference(self, record: dict[str, Any], found: _Stored | KafkaError) -> Reference | Unstorable:
        if isinstance(found, KafkaError):
            return Unstorable(f"Kafka does not take a batch of this size or form: {found.str()}")
        return Reference(self._settings.topic, *found, id=record["headers"][0][1])

    async def _ready(self) -> Producer:
        """Raises LogUnavailable."""
        if self._producer is None:  # one without records counts as false
            if self._starting is None or self._starting.done():
                self._starting = asyncio.ensure_future(asyncio.to_thread(self._started))
            self._producer = await asyncio.shield(self._starting)
        return self._producer

    def _started(self) -> Producer:
        """Once there is a topic. Raises LogUnavailable."""
        try:
            self._ensure_topic()
            producer = Producer(self._options(), logger=SILENT)
        except (KafkaException, TimeoutError) as error:
            reason = self._trouble.reason_of(error, patience_s=self._settings.timeout_s)
            raise self._unavailable(reason) from error
        self._producer = producer
        threading.Thread(target=self._hear, args=[producer], name="kafka", daemon=True).start()
        return producer

    def _hear(self, producer: Producer) -> None:
        while producer is self._producer:
            producer.poll(_POLL_S)

    def _options(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "client.id": "lakewarden-ingest",
            "compression.type": "lz4",
            "linger.ms": 1,
            "message.max.bytes": max(self._largest, 1_000_000),
            **settings.librdkafka,
            # not to be chosen: what is acknowledged must be durable
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": int(settings.timeout_s * 1000),
            "topic.metadata.propagation.max.ms": int(settings.timeout_s * 500),  # a missing topic is named in time
            "error_cb": self._trouble.note,
        }

    def _ensure_topic(self) -> None:
        """Raises KafkaException, TimeoutError."""
        settings, patience_s = self._settings, self._settings.timeout_s
        options: dict[str, Any] = {**settings.librdkafka, "error_cb": self._trouble.note}
        admin = AdminClient(options, logger=SILENT)
        try:
            known = admin.describe_topics(TopicCollection([settings.topic]), request_timeout=patience_s)
            known[settings.topic].result(patience_s + _PAUSE_S)
        except (KafkaException, TimeoutError) as error:
            admin.poll(0)  # what was wrong with the connection
            if not _is(KafkaError.UNKNOWN_TOPIC_OR_PART, error):
                raise
        else:
            return
        kept = {
            "cleanup.policy": "delete",
            "retention.ms": _UNLIMITED,
            "retention.bytes": _UNLIMITED,
            "max.message.bytes": str(max(self._largest, 1_048_588)),
            "min.insync.replicas": str(settings.min_in_sync),
        }
        topic = NewTopic(settings.topic, settings.partitions, settings.replicas, config=kept)
        try:
            admin.create_topics([topic], operation_timeout=patience_s)[settings.topic].result(patience_s + _PAUSE_S)
        except KafkaException as error:
            if not _is(KafkaError.TOPIC_ALREADY_EXISTS, error):
                raise
        else:
            logger.info("The topic %s was made in Kafka, for the contents of batches", settings.topic)


class _Group:
    """Records that are written together. `outcomes` is done when all of them are; they end on another thread."""

    def __init__(self, size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.outcomes: asyncio.Future[list[_Stored | KafkaError]] = self._loop.create_future()
        self._found: dict[int, _Stored | KafkaError] = {}
        self._size = size
        self._ending = threading.Lock()

    def end(self, number: int, error: KafkaError | None, message: KafkaMessage | None = None) -> None:
        with self._ending:
            self._found[number] = _place(message) if error is None else error
            is_done = len(self._found) == self._size
        if is_done:
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self.outcomes.done():
            self.outcomes.set_result([self._found[number] for number in range(self._size)])


def _is(code: int, error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() == code


def _place(message: KafkaMessage | None) -> _Stored:
    partition, offset = (None, None) if message is None else (message.partition(), message.offset())
    if partition is None or offset is None:
        raise ValueError("A record that was written has a place")
    return partition, offset


def _record(warehouse_id: UUID, sent: Batch | Request) -> dict[str, Any]:
    """All of a warehouse are in one partition, so that they are read as they were written."""
    name = str(sent.sequence_number) if isinstance(sent, Batch) else sent.key
    headers = [
        (ID_HEADER, new_id().hex),
        ("warehouse", str(warehouse_id)),
        ("principal", sent.principal),
        ("source", sent.source_id),
        ("batch", name),
        ("encoding", str(sent.encoding)),
    ]
    return {"key": str(warehouse_id), "value": sent.content, "headers": headers}


@cache
def _of(settings: KafkaLogConfig, largest: int) -> Records:
    return Records(settings, largest=largest)


def current() -> Records | None:
    """Of this process; None: there are no settings for Kafka."""
    settings = config.current().ingest
    return None if settings.kafka is None else _of(settings.kafka, settings.max_message_bytes)
