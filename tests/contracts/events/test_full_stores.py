"""A broker without room: commits go on, lag and reason are shown, and later each event arrives once, in order.

A limit on the size of files makes a real Kafka fail as a full disk does: a write ends in the middle with an error of the
operating system, the broker gives the directory up, and halts if it was the only one.
"""

import json
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.js.api import DiscardPolicy, StreamConfig
from prometheus_client.parser import text_string_to_metric_families

from lakewarden.config import NatsSinkConfig
from lakewarden.doctor import event_sinks
from lakewarden.events.models import EventSink
from lakewarden.events.sinks.interface import Message, SinkFailed
from lakewarden.events.sinks.nats import NatsSink
from tenants.models import Warehouse
from tests.contracts.events.brokers import Events, consumed_from_stream, consumed_from_topic, with_stream
from tests.contracts.events.faults import all_delivered, delivered, running
from tests.integration.catalog.lake import Lake, set_properties
from tests.servers import kafka
from tests.servers import nats as nats_server
from tests.servers.asgi_client import AsgiClient
from tests.servers.kafka import KafkaServer

TABLES = 12
DISK = 1_000_000
TOPIC = "events"


class Commits:
    """Over REST; each must succeed, whatever the sinks do."""

    def __init__(self, lake: Lake) -> None:
        self._lake, self.made = lake, 0
        assert lake.create_namespace("sales").status == 200
        for number in range(TABLES):
            assert lake.create_table(f"t{number}").status == 200

    def make(self, count: int) -> None:
        for _ in range(count):
            answer = self._lake.commit(f"t{self.made % TABLES}", set_properties(number=str(self.made)))
            assert answer.status == 200, answer.body
            self.made += 1

    def judge(self, events: Events, *, at_most: int = 1) -> None:
        """All of them are there, no more often than this, and the first arrivals of each table's are in order."""
        mine = [each for each in events if each["type"] == "updateTable"]
        times = Counter(each["id"] for each in mine)
        assert len(times) == self.made
        assert max(times.values()) <= at_most, times.most_common(5)
        first: dict[str, dict[str, Any]] = {}
        for each in mine:
            first.setdefault(each["id"], each)
        for table in {each["objectid"] for each in mine}:
            sequences = [each["sequence"] for each in first.values() if each["objectid"] == table]
            assert sequences == sorted(sequences), table


@pytest.fixture
def commits(admin: AsgiClient, warehouse: Warehouse) -> Commits:
    return Commits(Lake(admin, str(warehouse.id)))


@pytest.fixture
def is_told(admin: AsgiClient, database_url: str) -> Callable[[str], None]:
    """That the sink is behind, and why: by the metrics, by `doctor`, and by the list of sinks."""

    def ensure(reason: str) -> None:
        scraped = admin.get("/management/v1/server/metrics").body.decode()
        values = {
            sample.name: sample.value
            for family in text_string_to_metric_families(scraped)
            for sample in family.samples
            if sample.labels.get("sink") == "lake"
        }
        waiting = values["lakewarden_event_sink_lag_events"]
        assert waiting > 100
        assert values["lakewarden_event_sink_failing_seconds"] > 0
        assert values["lakewarden_event_sink_oldest_seconds"] > 0
        with psycopg.connect(database_url) as connection:
            (finding,) = event_sinks.examine(connection)
        assert finding.state == "warn", finding
        assert reason in finding.sentence
        assert "events wait" in finding.sentence
        (listed,) = admin.get("/management/v1/server/event-sink").json()["sinks"]
        assert reason in listed["failure"]

    return ensure


def limit_files(broker: KafkaServer, size: int) -> None:
    """Files of this running broker cannot grow beyond `size`: without privileges, and until its next start."""
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill(broker: KafkaServer, partition: int, size: int) -> None:
    producer = Producer({"bootstrap.servers": broker.plain, "acks": "all"})
    failures: list[object] = []
    for _ in range(size // 90_000):
        producer.produce(
            TOPIC, os.urandom(90_000), partition=partition, on_delivery=lambda error, _: failures.append(error)
        )
    assert producer.flush(60) == 0
    assert set(failures) == {None}


def make_topic(broker: KafkaServer, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.plain})
    admin.create_topics([NewTopic(TOPIC, partitions)])[TOPIC].result(60)


def to_kafka(broker: KafkaServer, folder: Path) -> Any:
    settings = {"BOOTSTRAP_SERVERS": broker.plain, "TOPIC": TOPIC, "TIMEOUT_S": "3"}
    return running({f"KAFKA__{name}": value for name, value in settings.items()}, folder=folder)


def is_failing() -> bool:
    return EventSink.objects.filter(name="lake", failing_since__isnull=False).exists()


@pytest.mark.timeout(600)
def test_a_kafka_whose_only_disk_is_full_delays_events_and_no_commit(
    commits: Commits, is_told: Callable[[str], None], tmp_path: Path
) -> None:
    with kafka.start() as broker, to_kafka(broker, tmp_path) as workers:
        make_topic(broker, 1)
        workers.start()
        commits.make(20)
        workers.until(lambda: delivered() > 0 and all_delivered(), "the first events")
        fill(broker, 0, DISK)
        limit_files(broker, DISK)
        commits.make(300)
        workers.until(lambda: broker.process.exited and is_failing(), "the broker's end")
        assert "File too large" in broker.process.log_text()
        commits.make(100)
        is_told("Kafka does not take events now")
        broker.start()  # there is room again
        workers.until(all_delivered, "all events")
        # a broker that halts may have stored what it could not confirm any more
        commits.judge(consumed_from_topic(broker, TOPIC, [0]), at_most=2)


@pytest.mark.timeout(600)
def test_a_full_disk_of_several_delays_events_without_repeating_those_of_the_others(
    commits: Commits, is_told: Callable[[str], None], tmp_path: Path
) -> None:
    disks = [tmp_path / "disk-a", tmp_path / "disk-b"]
    places = {"log_dirs": ",".join(map(str, disks)), "metadata_log_dir": str(tmp_path / "metadata")}
    with kafka.start(**places) as broker, to_kafka(broker, tmp_path) as workers:
        make_topic(broker, 2)
        workers.start()
        commits.make(4 * TABLES)
        workers.until(lambda: delivered() > 0 and all_delivered(), "the first events")
        (full,) = (number for number in (0, 1) if (disks[1] / f"{TOPIC}-{number}").exists())
        fill(broker, full, DISK)
        limit_files(broker, DISK)
        commits.make(300)
        workers.until(is_failing, "the refusal")
        failing_at = time.monotonic()
        commits.make(100)
        is_told("Kafka")
        workers.until(lambda: time.monotonic() - failing_at > 15, "several more attempts")
        assert not broker.process.exited
        of_the_other = [each["id"] for each in consumed_from_topic(broker, TOPIC, [1 - full])]
        assert len(of_the_other) == len(set(of_the_other))
        broker.stop()
        broker.start()  # a directory that failed is taken again at the next start only
        workers.until(all_delivered, "all events")
        commits.judge(consumed_from_topic(broker, TOPIC, [0, 1]))


@pytest.fixture(scope="module")
def nats_url() -> Iterator[str]:
    with nats_server.start() as server:
        yield server.url


def stream(**settings: Any) -> StreamConfig:
    # the window in which a stream knows repeated events is short, so that it hides none
    shortest = {"duplicate_window": 0.2, "discard": DiscardPolicy.NEW}
    return StreamConfig(name="lake", subjects=["lake.>"], **{**shortest, **settings})


@pytest.mark.timeout(600)
def test_a_full_stream_delays_events_and_no_commit(
    nats_url: str, commits: Commits, is_told: Callable[[str], None], tmp_path: Path
) -> None:
    with_stream(nats_url, lambda context: context.add_stream(stream(max_bytes=100_000)))
    settings = {"SERVERS": nats_url, "STREAM": "lake", "SUBJECT": "lake", "TIMEOUT_S": "3"}
    with running({f"NATS__{name}": value for name, value in settings.items()}, folder=tmp_path) as workers:
        workers.start()
        commits.make(400)
        workers.until(is_failing, "the refusal")
        commits.make(100)
        is_told("maximum bytes exceeded")
        failing_at = time.monotonic()
        workers.until(lambda: time.monotonic() - failing_at > 10, "several more attempts")
        with_stream(nats_url, lambda context: context.update_stream(stream(max_bytes=10_000_000)))
        workers.until(all_delivered, "all events")
    commits.judge(consumed_from_stream(nats_url, "lake"))
    with_stream(nats_url, lambda context: context.delete_stream("lake"))


def test_small_events_beside_one_that_finds_no_room_are_not_sent_again(nats_url: str) -> None:
    def message(number: int, key: str, size: int) -> Message:
        return Message(
            number, uuid4(), "updateTable", key, json.dumps({"number": number, "filler": "x" * size}).encode()
        )

    with_stream(nats_url, lambda context: context.add_stream(stream(max_bytes=5_000)))
    batch = [message(0, "a", 1000), message(1, "b", 8000), message(2, "c", 10), message(3, "b", 10)]
    settings = NatsSinkConfig.model_validate({"servers": nats_url, "stream": "lake", "subject": "lake", "timeout_s": 5})
    with closing(NatsSink(settings, lambda: None)) as sink:
        with pytest.raises(SinkFailed, match="maximum bytes exceeded") as failed:
            sink.deliver(batch)
        assert (failed.value.done, set(failed.value.ahead)) == (1, {2})
    assert [each["number"] for each in consumed_from_stream(nats_url, "lake")] == [0, 2]
    with_stream(nats_url, lambda context: context.delete_stream("lake"))
