"""Contents on three brokers, over TLS with a password: executors reach them, a leader is killed, and Spark tells no secret."""

import json
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest.references import ID_HEADER, Reference, pack
from lakewarden.config import KafkaConfig
from lakewarden.kafka import SILENT
from standalone.ports import free_port
from tests.pipeline.durable_log import change
from tests.pipeline.flushing import DEADLINE_S, Stage
from tests.pipeline.processes import START_S, await_flushes, pipeline, random_changes, replayed
from tests.servers import kafka_cluster
from tests.servers.kafka_cluster import PASSWORD, KafkaCluster

if TYPE_CHECKING:
    import subprocess

TOPIC = "contents"
PAGES = ("/jobs/", "/stages/", "/environment/", "/executors/", "/SQL/", "/StreamingQuery/")
LISTS = ("environment", "jobs", "stages", "sql?details=true&planDescription=true&length=100")


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with kafka_cluster.start() as running:
        admin = AdminClient({"bootstrap.servers": running.plain}, logger=SILENT)
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(60)
        running.await_whole()
        yield running


@pytest.fixture
def into(cluster: KafkaCluster) -> Callable[[bytes], bytes]:
    """Writes a content, and returns the reference."""
    producer = Producer({"bootstrap.servers": cluster.plain, "enable.idempotence": True}, logger=SILENT)

    def write(content: bytes) -> bytes:
        written: list[Reference] = []

        def ended(error: object, message: Message) -> None:
            assert error is None, error
            written.append(Reference(TOPIC, message.partition() or 0, message.offset() or 0, identifier))

        identifier = uuid4().hex
        headers: list[tuple[str, str | bytes | None]] = [(ID_HEADER, identifier)]
        producer.produce(TOPIC, content, headers=headers, on_delivery=ended)
        producer.flush(60)
        return pack(written[0])

    return write


def settings_of(cluster: KafkaCluster, *, password: str = PASSWORD) -> KafkaConfig:
    options = cluster.options(password=password)
    return KafkaConfig.model_validate({"bootstrap_servers": cluster.tls, "options": options})


def kill_leader(cluster: KafkaCluster) -> int:
    known = AdminClient({"bootstrap.servers": cluster.plain}, logger=SILENT).list_topics(TOPIC, timeout=30)
    killed = int(known.topics[TOPIC].partitions[0].leader)
    cluster.kill(killed)
    return killed


@pytest.mark.timeout(1500)
def test_all_events_are_in_the_tables_once_although_the_leader_is_killed(
    stage: Stage, cluster: KafkaCluster, into: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    port = free_port()
    shown = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": tmp_path.as_uri(),
    }
    stage.follower.stop()
    stage.policy("both")
    events = random_changes(200, seed=23)
    for start in range(0, len(events), 10):
        stage.log.append(events[start : start + 10], into=into)
    with pipeline(stage, kafka=settings_of(cluster), spark=json.dumps(shown)) as process:
        await_flushes(stage, process, count=1)
        assert stage.log.positions()[1] < stage.log.positions()[0]
        killed = kill_leader(cluster)
        try:
            await_all(stage, process)
        finally:
            cluster.start(killed)
        told = pages_of(port)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=DEADLINE_S)[1]
        assert process.returncode == 0, said
    stage.follower.start()
    assert [row["_cdc_sequence"] for row in stage.rows("t")] == [event["sequence"] for event in events]
    assert stage.mirror("t_current") == replayed(events)
    logged = [each.read_text(errors="replace") for each in tmp_path.rglob("*") if each.is_file()]
    assert any("SparkListenerEnvironmentUpdate" in each for each in logged)
    ensure_nothing_secret([said, *told, *logged], stage)


def await_all(stage: Stage, process: "subprocess.Popen[str]") -> None:
    """Until everything is flushed, whatever fails meanwhile."""
    deadline = time.monotonic() + START_S
    while stage.log.positions()[1] < stage.log.positions()[0]:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.1)


def pages_of(port: int) -> list[str]:
    """What everybody can read who reaches Spark's pages."""
    base = f"http://127.0.0.1:{port}"
    (application,) = json.loads(read(f"{base}/api/v1/applications"))
    found = [read(f"{base}{page}") for page in PAGES]
    found += [read(f"{base}/api/v1/applications/{application['id']}/{each}") for each in LISTS]
    assert "spark.app.name" in found[PAGES.index("/environment/")]
    return found


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return str(answer.read().decode())


def ensure_nothing_secret(texts: Sequence[str], stage: Stage) -> None:
    secret = stage.follower.options.config.client_secret
    assert secret is not None
    for each in texts:
        for word in (PASSWORD, "sasl.password", "sasl.username", secret.get_secret_value()):
            assert word not in each, each[max(0, each.index(word) - 300) : each.index(word) + 100]


def test_a_wrong_password_is_named_and_not_told(
    stage: Stage, cluster: KafkaCluster, into: Callable[[bytes], bytes]
) -> None:
    usual = stage.follower.options
    stage.follower.stop()
    stage.follower.options = replace(usual, kafka=settings_of(cluster, password=f"not-{PASSWORD}"))
    stage.log.append([change("t", "a", 1, {"v": 1})], into=into)
    stage.follower.start()
    try:
        stage.await_error("refused the user name or password")
        assert PASSWORD not in stage.follower.status.error
        stage.follower.stop()
        stage.follower.options = replace(usual, kafka=settings_of(cluster))
        stage.follower.start()
        stage.flush()
    finally:
        stage.follower.stop()
        stage.follower.options = usual
        stage.follower.start()
    assert [row["_cdc_row_id"] for row in stage.rows("t")] == ["a"]
