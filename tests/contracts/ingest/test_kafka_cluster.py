"""Contents on three brokers, over TLS with a password: brokers are killed, lost and come back; connections are refused."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from ingest.references import IN_KAFKA, unpack
from ingest.services.kafka import records
from lakewarden import config
from lakewarden.config import KafkaLogConfig
from lakewarden.doctor import ingest_contents
from lakewarden.errors import Unavailable
from lakewarden.kafka import SILENT
from pipeline.sources.kafka_contents import KafkaContents
from tests.contracts.ingest.topics import records_of
from tests.integration.ingest.changed import limits
from tests.integration.ingest.messages import batch, connect, event
from tests.integration.replicas.change_streams import numbers, say, socket_of
from tests.integration.replicas.pair import Lake, Pair, add_clients, started
from tests.servers import kafka_cluster
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_socket import opened
from tests.servers.certificates import Authority
from tests.servers.issuer import run_issuer
from tests.servers.kafka_cluster import BROKERS, PASSWORD, KafkaCluster
from tests.servers.lakewarden_serve import LakewardenFailed

TOPIC = "ingest-on-three"
LAST = 120


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with kafka_cluster.start() as running:
        yield running


@pytest.fixture(autouse=True)
def contents() -> None:
    """Not on the one broker of the other tests."""


def settings_of(cluster: KafkaCluster, **changed: Any) -> KafkaLogConfig:
    """Three copies, of which two must answer, are the defaults."""
    given = {"bootstrap_servers": cluster.tls, "options": cluster.options(), "topic": TOPIC, "timeout_s": 4}
    return KafkaLogConfig.model_validate({**given, "partitions": 1, **changed})


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, cluster: KafkaCluster, database_url: str) -> Iterator[Pair]:
    """In the PostgreSQL of this run, which ends after it."""
    del database_url
    kafka = settings_of(cluster)
    chosen = {
        "CONTENTS": "kafka",
        "KAFKA__BOOTSTRAP_SERVERS": cluster.tls,
        "KAFKA__OPTIONS": cluster.options(),
        "KAFKA__TOPIC": TOPIC,
        "KAFKA__PARTITIONS": str(kafka.partitions),
        "KAFKA__TIMEOUT_S": str(kafka.timeout_s),
    }
    state_dir = tmp_path_factory.mktemp("cluster") / "state"
    signed_in = add_clients(state_dir, people=1)
    settings = {f"LAKEWARDEN__INGEST__{name}": value for name, value in chosen.items()}
    with run_issuer(state_dir) as issuer, started(issuer, signed_in(issuer), settings=settings) as both:
        yield both


@pytest.fixture
def served(pair: Pair, cluster: KafkaCluster) -> Iterator[Lake]:
    """A warehouse; afterwards each row of its log is read from Kafka as it was sent, and no password was told."""
    made = Lake.made(pair)
    made.add_namespace("default")
    yield made
    with psycopg.connect(pair.a.server.settings["LAKEWARDEN__DATABASE__URL"]) as database:
        rows = database.execute(
            "select sequence_number, encoding, content from ingest_batch where warehouse_id = %s order by position",
            [made.id],
        ).fetchall()
    assert {encoding for _, encoding, _ in rows} == {IN_KAFKA}
    wanted = {number: unpack(content) for number, _, content in rows}
    with KafkaContents(settings_of(cluster)) as reader:
        found = reader.read(wanted.values())
    assert [json.loads(found[wanted[number]]) for number, _, _ in rows] == [[event(number)] for number, _, _ in rows]
    for each in pair.both:
        assert PASSWORD not in each.server.log_text()


def leader(cluster: KafkaCluster) -> int:
    known = AdminClient({"bootstrap.servers": cluster.plain}, logger=SILENT).list_topics(TOPIC, timeout=30)
    return int(known.topics[TOPIC].partitions[0].leader)


async def sent(pair: Pair, lake: Lake, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Each until it is acknowledged, one after the other; returns the refusals."""
    refusals: list[dict[str, Any]] = []
    async with socket_of(pair.a, lake, pair.admin) as socket:
        await say(socket, connect(lastAckSequence=numbers[0] - 1))
        for number in numbers:
            while (answer := await say(socket, batch(number)))["type"] == "nack":
                refusals.append(answer)
                await asyncio.sleep(0.2)
            assert (answer["status"], answer["sequenceNumber"]) in {("ok", number), ("duplicate", number)}
    return refusals


def test_nothing_is_lost_or_twice_when_the_leader_is_killed(pair: Pair, served: Lake, cluster: KafkaCluster) -> None:
    async def stream() -> list[dict[str, Any]]:
        assert await sent(pair, served, range(1, 11)) == []
        killed = await asyncio.to_thread(leader, cluster)
        sending = asyncio.create_task(sent(pair, served, range(11, LAST - 19)))
        await asyncio.sleep(0.3)  # in the middle of it
        await asyncio.to_thread(cluster.kill, killed)
        refusals = await sending
        assert await asyncio.to_thread(leader, cluster) != killed
        assert await sent(pair, served, range(LAST - 19, LAST + 1)) == []  # as before, although one is away
        return refusals

    try:
        refusals = pair.run(asyncio.wait_for(stream(), 240))
        kafka = settings_of(cluster)
        findings = list(ingest_contents.examine(with_kafka(kafka)))
    finally:
        cluster.start(*(number for number in BROKERS if cluster.processes[number].exited))
    assert {(each["reason"], each["shouldRetry"]) for each in refusals} <= {("internal_error", True)}
    assert numbers(pair, served) == [(number, number) for number in range(1, LAST + 1)]
    (finding,) = findings
    assert finding.state == "warn"
    assert "fewer copies in sync than it should: broker " in finding.sentence
    assert [each.state for each in ingest_contents.examine(with_kafka(kafka))] == ["ok"]


def with_kafka(kafka: KafkaLogConfig) -> config.Config:
    whole = config.current()
    return whole.model_copy(update={"ingest": whole.ingest.model_copy(update={"contents": "kafka", "kafka": kafka})})


def test_two_of_three_lost_refuse_batches_until_they_are_back(pair: Pair, served: Lake, cluster: KafkaCluster) -> None:
    """The one that is left leads the partition, and says that all is well."""
    assert pair.run(sent(pair, served, [1, 2])) == []
    gone = [number for number in BROKERS if number != leader(cluster)]
    written = len(pair.a.server.log_text())

    async def refused() -> dict[str, Any]:
        async with socket_of(pair.a, served, pair.admin) as socket:
            await say(socket, connect(lastAckSequence=2))
            return await say(socket, batch(3))

    cluster.kill(*gone)
    try:
        answer = pair.run(refused())
        health = pair.a.ask(pair.admin, "GET", "/health")
        events = {"events": [event(9)]}
        request = pair.a.ask(pair.admin, "POST", f"/lakehouse/w/{served.name}/cdc", events)
        said = failed_doctor(pair)
        cluster.kill(leader_left(gone))
        (finding,) = ingest_contents.examine(with_kafka(settings_of(cluster)))
    finally:
        cluster.start(*(number for number in BROKERS if cluster.processes[number].exited))
    assert (answer["reason"], answer["shouldRetry"]) == ("internal_error", True)
    assert "nothing was stored" in answer["errorMessage"]
    assert request.status == 503
    assert (health.status, health.json()["contents"]) == (200, "Kafka takes nothing")
    assert "has 1 copies in sync, and takes nothing below 2 (min.insync.replicas): broker " in said
    assert (finding.state, finding.sentence[:28]) == ("FAIL", "Kafka does not answer now: s")
    log = pair.a.server.log_text()[written:]
    assert "A batch could not be stored: Kafka did" in log or "A batch could not be stored: Kafka does" in log
    assert PASSWORD not in f"{answer}{request}{said}{finding}"
    assert numbers(pair, served) == [(1, 1), (2, 2)]
    pair.run(asyncio.wait_for(sent(pair, served, range(3, 21)), 120))
    assert numbers(pair, served) == [(number, number) for number in range(1, 21)]
    assert "contents" not in pair.a.ask(pair.admin, "GET", "/health").json()


def leader_left(gone: Sequence[int]) -> int:
    (left,) = set(BROKERS) - set(gone)
    return left


def failed_doctor(pair: Pair) -> str:
    with pytest.raises(LakewardenFailed) as raised:
        pair.a.server.run("doctor")
    return str(raised.value)


@pytest.mark.parametrize(
    ("case", "words", "state"),
    [
        ("authority", "unable to get local issuer certificate; ssl.ca.location", "the TLS connection to Kafka failed"),
        ("expired", "is refused: certificate has expired", "the TLS connection to Kafka failed"),
        ("password", "refused the user name or password", "Kafka refused the user name or password"),
    ],
)
@pytest.mark.usefixtures("lake")
def test_connections_that_are_refused_are_named(  # noqa: PLR0917 fixtures
    cluster: KafkaCluster,
    engine: AsgiClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    case: str,
    words: str,
    state: str,
) -> None:
    changed = {
        "authority": lambda: {"options": cluster.options(authority=Authority(tmp_path / "other").file)},
        "expired": lambda: {"bootstrap_servers": cluster.expired},
        "password": lambda: {"options": cluster.options(password=f"not-{PASSWORD}")},
    }[case]()
    kafka = settings_of(cluster, topic=f"t-{uuid4()}", timeout_s=3, **changed)
    limits(monkeypatch, contents="kafka", kafka=kafka)
    monkeypatch.setattr(ingest_contents, "_TIMEOUT_S", 3.0)
    with opened() as socket:
        answer = socket.ask(batch(1))
    assert answer["reason"] == "internal_error"
    assert words in caplog.text
    assert engine.get("/health").json()["contents"] == state
    (finding,) = ingest_contents.examine(config.current())
    assert finding.state == "FAIL"
    assert words in finding.sentence
    with KafkaContents(kafka, patience_s=3) as reader, pytest.raises(Unavailable, match=words):
        reader.read([unpack(b'{"topic":"t","partition":0,"offset":0,"id":"x"}')])
    assert PASSWORD not in f"{caplog.text}{answer}{finding}"
    into = records.current()
    assert into is not None
    into.close()


@pytest.mark.usefixtures("lake")
def test_what_it_made_has_three_copies(cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = settings_of(cluster, topic=f"t-{uuid4()}", partitions=3)
    limits(monkeypatch, contents="kafka", kafka=kafka)
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    assert [each.state for each in ingest_contents.examine(config.current())] == ["ok"]
    assert len(records_of(kafka, cluster)) == 1
