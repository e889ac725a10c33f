"""Events on a real broker, read by an independent consumer: none lost, in order per object, faults named."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from django.db import connections

from lakewarden.config import KafkaSinkConfig
from lakewarden.events.models import EventSink
from lakewarden.events.sinks.interface import Message, SinkFailed
from lakewarden.events.sinks.kafka import KafkaSink
from tests.integration.events.events import change
from tests.servers import kafka
from tests.servers.kafka import KafkaServer

PARTITIONS = 3
OBJECTS = 20
CHANGES = int(os.environ.get("LAKEWARDEN_TEST_EVENTS", "3000"))


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


def consumed(broker: KafkaServer, topic: str) -> list[dict[str, Any]]:
    """All that can be read, in the order of each partition."""
    consumer = Consumer({"bootstrap.servers": broker.plain, "group.id": str(uuid4()), "enable.auto.commit": False})
    found: list[dict[str, Any]] = []
    for number in range(PARTITIONS):
        place = TopicPartition(topic, number, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=60)
        consumer.assign([place])
        offset = 0
        while offset < end:
            record = consumer.poll(30)
            assert record is not None, f"partition {number} ends at {end}, and nothing came after {offset}"
            assert record.error() is None, record.error()
            offset = (record.offset() or 0) + 1
            found.append(json.loads(record.value() or b""))
    consumer.close()
    return found


def sink(address: str, topic: str, **settings: Any) -> KafkaSink:
    return KafkaSink(KafkaSinkConfig.model_validate({"bootstrap_servers": address, "topic": topic, **settings}))


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


@pytest.fixture
def workers(broker: KafkaServer, topic: str, database: None, tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Starts `lakewarden work` with a sink for the topic; returns its process id."""
    sinks = "LAKEWARDEN__EVENTS__SINKS__LAKE__"
    environment = {
        **os.environ,
        f"{sinks}KAFKA__BOOTSTRAP_SERVERS": broker.plain,
        f"{sinks}KAFKA__TOPIC": topic,
        f"{sinks}KAFKA__TIMEOUT_S": "3",
        f"{sinks}FROM_OLDEST": "true",
        f"{sinks}BATCH": "50",
        "LAKEWARDEN__EVENTS__LEASE_S": "3",
    }
    running: list[subprocess.Popen[bytes]] = []

    def start() -> int:
        with (tmp_path / "workers.log").open("ab") as log:
            command = [sys.executable, "-m", "lakewarden.cli", "work"]
            running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        return running[-1].pid

    yield start
    for each in running:
        each.kill()
        each.wait(20)


def _delivered() -> int:
    return sum(EventSink.objects.filter(name="lake").values_list("delivered", flat=True))


def _until(condition: Callable[[], bool], what: str, folder: Path) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        said = f"{list(EventSink.objects.values())}\n{(folder / 'workers.log').read_text()[-3000:]}"
        assert time.monotonic() < deadline, f"{what} did not come:\n{said}"
        time.sleep(0.1)


@pytest.mark.timeout(600)
def test_no_event_is_lost_while_the_broker_stops_and_relays_are_killed(
    broker: KafkaServer, topic: str, workers: Callable[[], int], tmp_path: Path
) -> None:
    seed = random.randrange(1_000_000)  # noqa: S311 no secret
    chance = random.Random(seed)  # noqa: S311 no secret
    faults_are_over, made = threading.Event(), 0

    def changes() -> None:
        nonlocal made
        while made < CHANGES or not faults_are_over.is_set():
            change(f"t{made % OBJECTS}", made // OBJECTS)
            made += 1
            time.sleep(0.001)
        connections.close_all()

    writing = threading.Thread(target=changes)
    writing.start()
    # two serve at once; the broker lives as long as the thread that starts it
    alive = [workers(), workers()]
    for _ in range(4):
        delivered = _delivered()
        _until(lambda before=delivered: _delivered() > before, "any delivery", tmp_path)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.5))
        os.kill(alive.pop(0), signal.SIGKILL)
        alive.append(workers())
    broker.stop()
    time.sleep(3)
    broker.start()
    faults_are_over.set()
    writing.join(120)
    _until(lambda: _delivered() == made, f"the last of {made} events, seed {seed}", tmp_path)

    events = consumed(broker, topic)
    first: dict[str, dict[str, Any]] = {}
    for each in events:
        first.setdefault(each["id"], each)
    assert len(first) == made, seed
    for name in (f"t{number}" for number in range(OBJECTS)):
        versions = [each["data"]["version"] for each in first.values() if each["objectid"] == name]
        assert versions == sorted(versions), (seed, name)
    print(f"\n{made} events, {len(events) - made} of them twice, seed {seed}")  # noqa: T201 the figures
