"""Writes contents to Kafka: idempotently, acknowledged by all replicas in sync, beside the event loop."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any, Final, NamedTuple
from uuid import UUID
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as KafkaMessage

from ingest.references import ID_HEADER, Reference
from ingest.services.kafka import topics
from ingest.services.log import Batch, Request
from ingest.services.statements import LogUnavailable, Unstorable
from lakewarden import board, config
from lakewarden.config import KafkaLogConfig
from lakewarden.ids import new_id
from lakewarden.kafka import OF_THE_MESSAGE, SILENT, Trouble
from lakewarden.kafka_states import KafkaState

logger = logging.getLogger(__name__)

_HEADERS_BYTES: Final = 64 * 1024
_POLL_S: Final = 1.0
_PAUSE_S: Final = 1.0
_LOST: Final = {
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 their public names
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError._DESTROY,  # noqa: SLF001
}
"""The topic was deleted under a producer, which would go on saying so for a while when it is there again; or the
producer gave up its connection for another one. Another producer writes the records once more.
"""

_Stored = tuple[int, int]
"""Partition and offset."""


class _Writer(NamedTuple):
    producer: Producer
    topic_id: str


class Written(NamedTuple):
    """Where each content is now, or why it alone cannot be stored; the id is that of the topic before."""

    topic_id: str
    places: list[Reference | Unstorable]


class Records:
    """The one producer of this process. A thread of its own hears what became of the records."""

    def __init__(self, settings: KafkaLogConfig, *, largest: int) -> None:
        """`largest`: bytes of the largest content."""
        self._settings = settings
        self._largest = largest + _HEADERS_BYTES
        self._trouble = Trouble(settings)
        self._writer: _Writer | None = None
        self._starting: asyncio.Future[None] | None = None
        self._looking: asyncio.Future[str] | None = None
        self._is_gone = False

    @property
    def topic(self) -> str:
        return self._settings.topic

    async def add(self, warehouse_id: UUID, contents: Sequence[Batch | Request]) -> Written:
        """Raises LogUnavailable: then nothing refers to what may have been written."""
        records = [_record(warehouse_id, each) for each in contents]
        writer, found = await self._written_once_there_is_a_topic(records)
        if len(records) > 1:
            # a broker refuses records by batches, because of one of them: each of these is sent alone
            for number, each in enumerate(found):
                if isinstance(each, KafkaError) and each.code() in OF_THE_MESSAGE:
                    (found[number],) = await self._written(writer.producer, [records[number]])
        self._ensure_none_failed(found)
        places = [self._reference(record, each) for record, each in zip(records, found, strict=True)]
        return Written(writer.topic_id, places)

    async def look_at_topic(self) -> None:
        """References were refused: the topic may be another one than before. Raises LogUnavailable."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._topic_id())
        found = await asyncio.shield(self._looking)
        if self._writer is not None and found != self._writer.topic_id:
            logger.warning(
                "The topic %s was made anew in Kafka: contents that waited in the one before are gone", self.topic
            )
            self._writer = self._writer._replace(topic_id=found)

    async def ask_whether_it_is_back(self) -> None:
        """After a failure, write an empty record. Raises LogUnavailable."""
        if self._is_gone:
            _, found = await self._written_once_there_is_a_topic([{"value": b""}])
            self._ensure_none_failed(found)

    def close(self) -> None:
        """Nothing waits by then: whoever adds, waits for it."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.producer.flush(_PAUSE_S)

    async def _written_once_there_is_a_topic(
        self, records: Sequence[dict[str, Any]]
    ) -> tuple[_Writer, list[_Stored | KafkaError]]:
        writer = await self._ready()
        found = await self._written(writer.producer, records)
        if any(isinstance(each, KafkaError) and each.code() in _LOST for each in found):
            self._forget(writer)
            before, writer = writer, await self._ready()
            if writer.topic_id != before.topic_id:
                # those that were written before are gone, too
                logger.warning("The topic %s was deleted in Kafka: contents that waited there are gone", self.topic)
            found = await self._written(writer.producer, records)
        return writer, found

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
            if self._is_gone:
                _show(KafkaState.UP)
            self._is_gone = False
            self._trouble.forget()
            return
        if self._writer is not None and any(each.fatal() or each.code() in _LOST for each in failed):
            self._forget(self._writer)
        raise self._unavailable(self._trouble.reason(failed[0], patience_s=self._settings.timeout_s))

    def _unavailable(self, reason: str) -> LogUnavailable:
        self._is_gone = True
        _show(self._trouble.state)
        return LogUnavailable(reason)

    def _reference(self, record: dict[str, Any], found: _Stored | KafkaError) -> Reference | Unstorable:
        if isinstance(found, KafkaError):
            return Unstorable(f"Kafka does not take a batch of this size or form: {found.str()}")
        return Reference(self._settings.topic, *found, id=record["headers"][0][1], crc=crc32(record["value"]))

    async def _ready(self) -> _Writer:
        """Raises LogUnavailable."""
        while self._writer is None:
            if self._starting is None or self._starting.done():
                self._starting = asyncio.ensure_future(self._start())
            await asyncio.shield(self._starting)
        return self._writer

    def _forget(self, writer: _Writer) -> None:
        """The next group has a new one."""
        if self._writer is not None and self._writer.producer is writer.producer:
            self._writer = None

    async def _start(self) -> None:
        """Once there is a topic. Raises LogUnavailable."""
        topic_id = await self._topic_id()
        with self._named_failures():
            producer = await asyncio.to_thread(Producer, self._options(), logger=SILENT)
        self._writer = _Writer(producer, topic_id)
        threading.Thread(target=self._hear, args=[producer], name="kafka", daemon=True).start()

    async def _topic_id(self) -> str:
        """Its floors are in the database. Raises LogUnavailable."""
        with self._named_failures():
            found = await asyncio.to_thread(
                topics.find_or_make, self._settings, largest=self._largest, trouble=self._trouble
            )
        await topics.note_floors(found)
        return found.topic.id

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        try:
            yield
        except (KafkaException, TimeoutError) as error:
            reason = self._trouble.reason_of(error, patience_s=self._settings.timeout_s)
            raise self._unavailable(reason) from error

    def _hear(self, producer: Producer) -> None:
        # also what was given to one that is not the writer's any more
        while (self._writer is not None and producer is self._writer.producer) or len(producer):
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
            "allow.auto.create.topics": False,  # brokers would make one that deletes contents after a week
            "message.timeout.ms": int(settings.timeout_s * 1000),
            "topic.metadata.propagation.max.ms": int(settings.timeout_s * 500),  # a missing topic is named in time
            "error_cb": self._trouble.note,
        }


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


def _show(state: KafkaState) -> None:
    """In `/health`, of all processes."""
    board.current().note_contents(state, int(time.monotonic() * 1000))


@cache
def _of(settings: KafkaLogConfig, largest: int) -> Records:
    return Records(settings, largest=largest)


def current() -> Records | None:
    """Of this process; None: there are no settings for Kafka."""
    settings = config.current().ingest
    return None if settings.kafka is None else _of(settings.kafka, settings.max_message_bytes)
