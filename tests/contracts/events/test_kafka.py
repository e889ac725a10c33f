"""Events on a real broker, read by an independent consumer: none lost, in order per object, faults named."""

import json
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lakewarden.config import KafkaSinkConfig
from lakewarden.events.sinks.interface import Message, SinkFailed
from lakewarden.events.sinks.kafka import KafkaSink
from tests.contracts.events.brokers import Events, consumed_from_topic
from tests.contracts.events.faults import Workers, frozen, running, storm
from tests.servers import kafka
from tests.servers.certificates import Certificates
from tests.servers.kafka import KafkaServer

PARTITIONS = 3


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaServer]:
    with kafka.start() as running:
        yield running


@pytest.fixture
def topic(broker: KafkaServer) -> str:
    name = f"events-{uuid4()}"
    admin = AdminClient({"bootstrap.servers": broker.plain})
    made = admin.create_topics([NewTopic(name, PARTITIONS, config={"max.message.bytes": "100000"})])
    made[name].result(60)
    return name


def message(number: int, *, key: str = "t", size: int = 0) -> Message:
    body = json.dumps({"data": {"version": number}, "filler": os.urandom(size // 2).hex()}).encode()
    return Message(number, uuid4(), "updateTable", key, body)


def consumed(broker: KafkaServer, topic: str) -> Events:
    return consumed_from_topic(broker, topic, range(PARTITIONS))


def sink(address: str, topic: str, **settings: Any) -> KafkaSink:
    return KafkaSink(
        KafkaSinkConfig.model_validate({"bootstrap_servers": address, "topic": topic, **settings}), lambda: None
    )


def test_messages_are_on_the_broker_when_they_are_delivered(broker: KafkaServer, topic: str) -> None:
    with_key = [message(number, key=f"t{number % 4}") for number in range(100)]
    assert sink(broker.plain, topic).deliver(with_key) == []
    versions = [each["data"]["version"] for each in consumed(broker, topic)]
    assert sorted(versions) == list(range(100))
    for key in range(4):
        mine = [version for version in versions if version % 4 == key]
        assert mine == sorted(mine)


def test_a_message_that_the_broker_does_not_take_is_refused_alone(broker: KafkaServer, topic: str) -> None:
    batch = [message(1), message(2, size=200_000), message(3)]
    refused = sink(broker.plain, topic).deliver(batch)
    assert [each.message.position for each in refused] == [2]
    assert sorted(each["data"]["version"] for each in consumed(broker, topic)) == [1, 3]


def test_a_wrong_password_is_named_at_once(broker: KafkaServer, topic: str) -> None:
    options = "security.protocol=SASL_PLAINTEXT;sasl.mechanism=PLAIN;sasl.username=lake;sasl.password="
    sink(broker.sasl, topic, options=f"{options}lake-secret").deliver([message(1)])
    began = time.monotonic()
    with pytest.raises(SinkFailed, match="refused the user name or password") as refused:
        sink(broker.sasl, topic, options=f"{options}wrong-secret", timeout_s=300).deliver([message(2)])
    assert time.monotonic() - began < 100
    assert "wrong-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"topic": "missing"}, "[Uu]nknown topic"), ({"options": "made.up=1"}, "made.up")],
    ids=["topic", "option"],
)
def test_wrong_settings_are_named(broker: KafkaServer, topic: str, settings: dict[str, Any], named: str) -> None:
    chosen: dict[str, Any] = {"topic": topic, "timeout_s": 20, **settings}
    with pytest.raises(SinkFailed, match=named):
        sink(broker.plain, **chosen).deliver([message(1)])


def test_a_broker_that_is_away_is_named(topic: str) -> None:
    with pytest.raises(SinkFailed, match=r"127\.0\.0\.1:9"):
        sink("127.0.0.1:9", topic, timeout_s=3).deliver([message(1)])


def test_a_broker_that_is_reached_and_stores_nothing_is_named(broker: KafkaServer, topic: str) -> None:
    one = sink(broker.plain, topic, timeout_s=3)
    one.deliver([message(1)])
    os.killpg(broker.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(SinkFailed, match=r"did not take events within 3 s.*see the log of the brokers"):
            one.deliver([message(2)])
    finally:
        os.killpg(broker.process.pid, signal.SIGCONT)


def test_an_expired_certificate_is_named(tmp_path: Path, topic: str) -> None:
    certificates = Certificates.made(tmp_path / "tls", is_expired=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    options = f"security.protocol=SSL;ssl.ca.location={certificates.authority}"
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        is_over = threading.Event()
        threads.submit(handshakes, listening, context, is_over)
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(SinkFailed, match=r"TLS connection failed(.|\n)*(expired|verify failed)"):
            sink(address, topic, options=options, timeout_s=20).deliver([message(1)])
        is_over.set()


def handshakes(listening: socket.socket, context: ssl.SSLContext, is_over: threading.Event) -> None:
    listening.settimeout(0.1)
    while not is_over.is_set():
        with suppress(OSError):
            accepted, _ = listening.accept()
            accepted.settimeout(5)
            context.wrap_socket(accepted, server_side=True).close()


@pytest.fixture
def workers(broker: KafkaServer, topic: str, database: None, tmp_path: Path) -> Iterator[Workers]:
    kafka = {"BOOTSTRAP_SERVERS": broker.plain, "TOPIC": topic, "TIMEOUT_S": "3"}
    with running({f"KAFKA__{name}": value for name, value in kafka.items()}, folder=tmp_path) as started:
        yield started


@pytest.mark.timeout(600)
def test_no_event_is_lost_while_the_broker_stops_and_relays_are_killed(
    broker: KafkaServer, topic: str, workers: Workers
) -> None:
    storm(workers, stop=broker.stop, start=broker.start, received=lambda: consumed(broker, topic))


@pytest.mark.timeout(600)
def test_a_relay_that_was_frozen_for_longer_than_its_lease_changes_no_order(
    broker: KafkaServer, topic: str, workers: Workers
) -> None:
    frozen(workers, received=lambda: consumed(broker, topic))
