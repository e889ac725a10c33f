"""Two servers whose contents go to one Kafka; after each test, all that its warehouse's log refers to is read there."""

import json
from collections.abc import Iterator

import psycopg
import pytest

from ingest.references import IN_KAFKA, unpack
from lakewarden.config import KafkaConfig
from pipeline.sources.kafka_contents import KafkaContents
from tests.integration.replicas.pair import Lake, Pair, add_clients, started
from tests.servers import kafka
from tests.servers.issuer import run_issuer
from tests.servers.kafka import KafkaServer


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaServer]:
    with kafka.start() as running:
        yield running


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory, broker: KafkaServer) -> Iterator[Pair]:
    state_dir = tmp_path_factory.mktemp("replicas") / "state"
    signed_in = add_clients(state_dir)
    chosen = {"BOOTSTRAP_SERVERS": broker.plain, "REPLICAS": "1", "MIN_IN_SYNC": "1", "TIMEOUT_S": "2"}
    settings = {f"LAKEWARDEN__INGEST__KAFKA__{name}": value for name, value in chosen.items()}
    settings["LAKEWARDEN__INGEST__CONTENTS"] = "kafka"
    with run_issuer(state_dir) as issuer, started(issuer, signed_in(issuer), settings=settings) as both:
        yield both


@pytest.fixture
def lake(pair: Pair, broker: KafkaServer) -> Iterator[Lake]:
    made = Lake.made(pair)
    yield made
    with psycopg.connect(pair.a.server.settings["LAKEWARDEN__DATABASE__URL"]) as database:
        rows = database.execute(
            "select sequence_number, encoding, content from ingest_batch where warehouse_id = %s", [made.id]
        ).fetchall()
    assert rows
    assert {encoding for _, encoding, _ in rows} == {IN_KAFKA}
    wanted = {number: unpack(content) for number, _, content in rows}
    with KafkaContents(KafkaConfig(bootstrap_servers=(broker.plain,))) as contents:
        found = contents.read(wanted.values())
    for number, reference in wanted.items():
        assert json.loads(found[reference])[0]["rowId"] in {f"user-{number}", "user-0"}
