"""Reads the contents of batches from Kafka, by partition and offset."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Self
from zlib import crc32

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ingest.references import ID_HEADER, Reference
from lakewarden.config import KafkaConfig
from lakewarden.errors import InternalError, Unavailable
from lakewarden.kafka import SILENT, Trouble

_NEAR = 1000
_NEAR_BYTES = 1024 * 1024
"""Records that are rather read and dropped than jumped over: so many, and about so many bytes."""
_PATIENCE_S = 20.0
_POLL_S = 1.0
_GONE = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 their public names
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class KafkaContents:
    """A reader that joins no group, and remembers nothing in Kafka."""

    def __init__(self, settings: KafkaConfig, *, patience_s: float = _PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._trouble = Trouble(settings)
        self._partition = ("", -1)
        self._next = 0
        self._typical_bytes = 1
        options: dict[str, Any] = {
            "client.id": "lakewarden-pipeline",
            "group.id": "lakewarden-pipeline",
            "queued.max.messages.kbytes": 16 * 1024,
            "fetch.queue.backoff.ms": 20,
            **settings.librdkafka,
            "check.crcs": True,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_uncommitted",
            "error_cb": self._trouble.note,
        }
        try:
            self._consumer = Consumer(options, logger=SILENT)
        except KafkaException as error:
            raise InternalError(f"The options of Kafka are not valid: {self._trouble.said(error.args[0])}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self, references: Iterable[Reference]) -> dict[Reference, bytes]:
        """The contents of all of them. Raises Unavailable; InternalError for one that is gone."""
        partitions: dict[tuple[str, int], list[Reference]] = {}
        for each in references:
            partitions.setdefault((each.topic, each.partition), []).append(each)
        found: dict[Reference, bytes] = {}
        for wanted in partitions.values():
            waiting = deque(sorted(wanted, key=lambda reference: reference.offset))
            heard_at = time.monotonic()
            while waiting:
                self._go_to(waiting[0])
                # one after the other: a neighbour's may be large, and the library's queue is bounded by bytes
                record = self._consumer.poll(_POLL_S)
                if record is not None:
                    self._take(record, waiting, found)
                    heard_at = time.monotonic()
                    continue
                self._ensure_is_there(waiting[0])
                if time.monotonic() - heard_at > self._patience_s:
                    late = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 its public name
                    raise Unavailable(self._trouble.reason(late, patience_s=self._patience_s, wanted="give contents"))
        return found

    def _go_to(self, wanted: Reference) -> None:
        partition = wanted.topic, wanted.partition
        if partition != self._partition:
            self._ensure_is_there(wanted)
        elif self._next <= wanted.offset <= self._next + min(_NEAR, _NEAR_BYTES // self._typical_bytes):
            return
        self._consumer.assign([TopicPartition(*partition, wanted.offset)])
        self._partition, self._next = partition, wanted.offset

    def _ensure_is_there(self, wanted: Reference) -> None:
        """For what is missing, the library would wait without a word."""
        try:
            begin, end = self._consumer.get_watermark_offsets(
                TopicPartition(wanted.topic, wanted.partition), timeout=self._patience_s
            )
        except KafkaException as error:
            if error.args[0].code() in _GONE:
                raise _gone(wanted, error.args[0]) from error
            self._consumer.poll(0.1)  # what was wrong with the connection
            raise Unavailable(
                self._trouble.reason_of(error, patience_s=self._patience_s, wanted="give contents")
            ) from error
        if not begin <= wanted.offset < end:
            raise _gone(wanted, None)

    def _take(self, record: Message, waiting: deque[Reference], found: dict[Reference, bytes]) -> None:
        error, offset = record.error(), record.offset()
        if error is not None and error.code() not in _GONE:
            self._trouble.note(error)
            return
        if error is None and offset is not None:
            self._next = offset + 1
            self._typical_bytes = max(1, (3 * self._typical_bytes + len(record.value() or b"")) // 4)
        if not waiting or (error is None and offset is not None and offset < waiting[0].offset):
            return
        wanted = waiting[0]
        is_found = offset == wanted.offset and dict(record.headers() or ()).get(ID_HEADER) == wanted.id.encode()
        if error is not None or not is_found:
            raise _gone(wanted, error)
        content = record.value() or b""
        if wanted.crc is not None and crc32(content) != wanted.crc:
            raise InternalError(
                f"The content of a batch is not what was written to Kafka: {_place(wanted)} has another checksum. "
                "Nothing of it is in a table, and nothing is skipped: see how to keep change data in Kafka"
            )
        found[waiting.popleft()] = content


def _gone(wanted: Reference, error: KafkaError | None) -> InternalError:
    said = "" if error is None else f" ({error.str()})"
    return InternalError(
        f"The content of a batch is gone from Kafka: {_place(wanted)}{said}. The log refers to it, and nothing is "
        "skipped: see how to keep change data in Kafka"
    )


def _place(wanted: Reference) -> str:
    return f"topic {wanted.topic}, partition {wanted.partition}, offset {wanted.offset}"
