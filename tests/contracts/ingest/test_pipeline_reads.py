"""What the pipeline's source reads of a log whose contents are in Kafka, in Postgres and compressed."""

import gzip
import json
import os
from dataclasses import replace
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from confluent_kafka import Message
from pyspark.sql.datasource import InputPartition

from ingest.models import IngestBatch
from ingest.references import pack
from ingest.services.kafka import placing, records
from lakewarden.config import KafkaLogConfig
from lakewarden.errors import InternalError, Unavailable
from pipeline.sources import kafka_contents, postgres_log
from pipeline.sources.kafka_contents import KafkaContents
from pipeline.sources.postgres_log import DSN_OPTION, KAFKA_OPTION, LogReader, kafka_option
from tenants.models import Warehouse
from tests.contracts.ingest.topics import references, settings_of
from tests.integration.ingest.batches import ROOMY, open_source, run, unchanged
from tests.integration.ingest.batches import batch as plain
from tests.integration.ingest.changed import limits
from tests.integration.ingest.messages import batch, event
from tests.servers.asgi_socket import AsgiSocket, opened
from tests.servers.kafka import KafkaServer

pytestmark = pytest.mark.usefixtures("lake")
LAST = 60


def read(lake: Warehouse, url: str, kafka: KafkaLogConfig | None, *, after: int = 0) -> list[dict[str, Any]]:
    triggers = {"events": 1, "bytes": 1, "age_s": 0, "max_events": 1, "max_bytes": 1, "max_tables": 1}
    options = {DSN_OPTION: url, KAFKA_OPTION: kafka_option(kafka), "warehouse": str(lake.id), "partitions": "1"}
    reader = LogReader(options | {"triggers": json.dumps(triggers)})
    return [row for block in reader.read(InputPartition((after, LAST))) for row in block.to_pylist()]


def send(socket: AsgiSocket, number: int) -> None:
    assert socket.ask(batch(number, event(number, after={"x": "y" * 5000})))["status"] == "ok"


@pytest.mark.parametrize("near", [1000, 3])
def test_contents_are_read_by_position_wherever_they_are(
    lake: Warehouse, contents: KafkaLogConfig, database_url: str, monkeypatch: pytest.MonkeyPatch, near: int
) -> None:
    """In blocks of a few batches, from two topics and Postgres, among records that nothing refers to."""
    monkeypatch.setattr(postgres_log, "_BLOCK_BYTES", 40_000)
    monkeypatch.setattr(kafka_contents, "_NEAR", near)
    later = contents.model_copy(update={"topic": f"{contents.topic}-later"})
    with opened() as socket:
        for number in range(1, LAST + 1):
            limits(monkeypatch, contents="postgres" if number % 5 == 0 else "kafka")
            limits(monkeypatch, kafka=contents if number < LAST // 2 else later)
            send(socket, number)
            if number % 10 == 0:
                garbage = [plain(each) for each in range(10)]
                run(into().add(lake.id, garbage))
    rows = read(lake, database_url, contents, after=7)
    assert [row["position"] for row in rows] == list(range(8, LAST + 1))
    assert {row["encoding"] for row in rows} == {0}
    assert [json.loads(bytes(row["content"]))[0]["sequence"] for row in rows] == list(range(8, LAST + 1))


def into() -> records.Records:
    found = records.current()
    assert found is not None
    return found


def test_a_compressed_content_stays_compressed(lake: Warehouse, contents: KafkaLogConfig, database_url: str) -> None:
    packed = replace(plain(1), content=gzip.compress(b"[{}]"), encoding=1)

    async def add() -> None:
        await open_source(lake.id, source_id="s")
        decided = await unchanged(lake.id)
        await placing.append(lake.id, [packed], capacity=ROOMY, decided=decided)

    run(add())
    (row,) = read(lake, database_url, contents)
    assert (row["encoding"], bytes(row["content"])) == (1, packed.content)


def test_another_record_at_the_same_offset_is_not_taken_for_the_content(
    lake: Warehouse, contents: KafkaLogConfig, database_url: str
) -> None:
    with opened() as socket:
        send(socket, 1)
        send(socket, 2)
    IngestBatch.objects.filter(position=2).update(content=IngestBatch.objects.get(position=1).content)
    assert len(read(lake, database_url, contents)) == 2
    reference = references(lake.id)[0][1]
    for changed in ({"id": "0" * 32}, {"offset": 99}, {"partition": 99}, {"topic": "missing"}):
        wrong = msgspec.structs.replace(reference, **changed)
        IngestBatch.objects.filter(position=2).update(content=pack(wrong))
        with pytest.raises(InternalError, match=f"topic {wrong.topic}, partition .*{wrong.offset}.*nothing is skipped"):
            read(lake, database_url, contents)


def test_a_content_with_another_checksum_is_not_taken(
    lake: Warehouse, contents: KafkaLogConfig, database_url: str
) -> None:
    """It is the record of that id, but not what was written; references of releases before have no checksum."""
    with opened() as socket:
        send(socket, 1)
    reference = references(lake.id)[0][1]
    assert reference.crc is not None
    for crc in (reference.crc, None):
        IngestBatch.objects.update(content=pack(msgspec.structs.replace(reference, crc=crc)))
        assert len(read(lake, database_url, contents)) == 1
    IngestBatch.objects.update(content=pack(msgspec.structs.replace(reference, crc=reference.crc ^ 1)))
    sentence = f"topic {reference.topic}, partition {reference.partition}, offset 0 has another checksum"
    with pytest.raises(InternalError, match=sentence):
        read(lake, database_url, contents)


def test_large_records_of_a_neighbour_are_jumped_over(
    lake: Warehouse, contents: KafkaLogConfig, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch, kafka=contents.model_copy(update={"partitions": 1}))
    taken: list[int] = []
    original = KafkaContents._take

    def counted(self: KafkaContents, record: Message, *given: Any) -> None:
        taken.append(len(record.value() or b""))
        original(self, record, *given)

    monkeypatch.setattr(KafkaContents, "_take", counted)
    large = [plain(number, content=os.urandom(2_000_000)) for number in range(8)]
    with opened() as socket:
        for number in range(1, 4):
            send(socket, number)
            for each in large:
                run(into().add(uuid4(), [each]))
        send(socket, 4)
    rows = read(lake, database_url, contents)
    assert [json.loads(bytes(row["content"]))[0]["sequence"] for row in rows] == [1, 2, 3, 4]
    assert len(taken) <= 10


def test_settings_that_are_missing_and_brokers_that_are_away_are_named(
    lake: Warehouse, contents: KafkaLogConfig, broker: KafkaServer, database_url: str
) -> None:
    with opened() as socket:
        send(socket, 1)
    with pytest.raises(InternalError, match="LAKEWARDEN__INGEST__KAFKA__BOOTSTRAP_SERVERS"):
        read(lake, database_url, None)
    wanted = [references(lake.id)[0][1]]
    away = contents.model_copy(update={"bootstrap_servers": ("127.0.0.1:9",)})
    with KafkaContents(away, patience_s=3) as nowhere, pytest.raises(Unavailable, match=r"127\.0\.0\.1:9"):
        nowhere.read(wanted)
    options = "security.protocol=SASL_PLAINTEXT;sasl.mechanism=PLAIN;sasl.username=lake;sasl.password=wrong"
    refused = settings_of(broker, bootstrap_servers=broker.sasl, options=options)
    with KafkaContents(refused) as closed, pytest.raises(Unavailable, match="refused the user name or password"):
        closed.read(wanted)
