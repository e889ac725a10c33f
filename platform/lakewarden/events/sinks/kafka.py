"""Produces events to Kafka by librdkafka: idempotent, acknowledged by all replicas in sync."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as KafkaMessage

from lakewarden.config import KafkaSinkConfig
from lakewarden.events.envelope import CONTENT_TYPE
from lakewarden.events.leases import LeaseLost
from lakewarden.events.sinks.interface import EnsureMine, Message, Refused, SinkFailed
from lakewarden.kafka import OF_THE_MESSAGE, SILENT, Trouble


class KafkaSink:
    """The key of a record is the id of the event's object, so one partition holds all of its events in order."""

    def __init__(self, settings: KafkaSinkConfig, ensure_mine: EnsureMine) -> None:
        self._ensure_mine = ensure_mine
        self._topic, self._timeout_s = settings.topic, settings.timeout_s
        self._trouble = Trouble(settings)
        self._stored: set[int] = set()
        chosen = {
            "client.id": "lakewarden",
            "compression.type": "zstd",
            "linger.ms": 5,
            **settings.librdkafka,
            # not to be chosen: what is acknowledged must be durable and in order
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": int(settings.timeout_s * 1000),
            "topic.metadata.propagation.max.ms": int(settings.timeout_s * 500),  # a missing topic is named in time
            "error_cb": self._trouble.note,
        }
        try:
            self._producer = Producer(chosen, logger=SILENT)
        except KafkaException as error:
            raise SinkFailed(f"The options of Kafka are not valid: {self._trouble.said(error.args[0])}") from error

    def deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        self._stored.clear()
        try:
            return self._refused(messages)
        except SinkFailed as error:
            raise SinkFailed.after(str(error), messages, settled=self._stored) from error

    def _refused(self, messages: Sequence[Message]) -> Sequence[Refused]:
        failed = self._failures(messages)
        if not failed:
            return []
        if len(messages) == 1:
            return [Refused(each, error.str()) for each, error in failed]
        # a broker refuses records by batches, because of one of them: each of these is sent alone
        return [refused for each, _ in failed for refused in self._refused([each])]

    def _failures(self, messages: Sequence[Message]) -> list[tuple[Message, KafkaError]]:
        """Those that the broker refused for what they are. Raises SinkFailed for any other failure."""
        self._ensure_mine()
        self._trouble.forget()
        outcomes: dict[int, KafkaError | None] = {}
        for each in messages:
            try:
                self._produce(each, outcomes)
            except KafkaException as refusal:
                outcomes[each.position] = refusal.args[0]
        self._wait_for(len(messages), outcomes)
        failed = [(each, found) for each in messages if (found := outcomes[each.position]) is not None]
        if other := next((found for _, found in failed if found.code() not in OF_THE_MESSAGE), None):
            raise SinkFailed(self._reason(other))
        return failed

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)

    def _produce(self, message: Message, outcomes: dict[int, KafkaError | None]) -> None:
        def ended(error: KafkaError | None, _: KafkaMessage) -> None:
            outcomes[message.position] = error
            if error is None:
                self._stored.add(message.position)

        headers: list[tuple[str, Any]] = [("content-type", CONTENT_TYPE)]
        while True:
            try:
                self._producer.produce(
                    self._topic, value=message.body, key=message.key, headers=headers, on_delivery=ended
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def _wait_for(self, count: int, outcomes: dict[int, KafkaError | None]) -> None:
        deadline = time.monotonic() + self._timeout_s + 5
        while len(outcomes) < count:
            self._producer.poll(0.2)
            # librdkafka tries wrong passwords again until the messages' time is over: they are named at once
            if (refusal := self._trouble.refusal) is not None:
                self._producer.purge()
                raise SinkFailed(self._reason(refusal))
            try:
                self._ensure_mine()
            except LeaseLost:
                self._producer.purge()  # what librdkafka has not sent yet
                raise
            if time.monotonic() > deadline:
                raise SinkFailed("Kafka did not answer in time")

    def _reason(self, error: KafkaError) -> str:
        return self._trouble.reason(error, patience_s=self._timeout_s)
