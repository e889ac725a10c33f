"""A server that is killed while it creates a table in a bucket: the file that it leaves is found, and nothing else."""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import urllib3

from tests.contracts.storage.s3_warehouse import sent
from tests.integration.storage.served_lake import ServedLake, serve_lake
from tests.servers import sick_front
from tests.servers.minio import MinioServer, minio
from tests.servers.sick_front import SickFront
from tests.servers.sick_store import Illness

__all__ = ["minio"]

AGE = timedelta(days=2)


@dataclass
class Lake:
    served: ServedLake
    minio: MinioServer
    front: SickFront
    bucket: str
    warehouse: str

    def objects(self) -> set[str]:
        return set(self.minio.keys_in(self.bucket))

    def orphans(self, *words: str) -> list[dict[str, object]]:
        """What the command prints, as an operator runs it beside the server."""
        lines = self.served.server.run("orphan-files", "--json", *words).splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def lake(minio: MinioServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    bucket = minio.new_bucket()
    settings = {"RETRIES": "0", "REQUEST_TIMEOUT_S": "60", "WRITE_TIMEOUT_S": "120"}
    with (
        sick_front.before(minio.address) as front,
        serve_lake(tmp_path_factory.mktemp("lake"), settings) as served,
    ):
        profile, credential = sent(minio, bucket, minio.new_owner(bucket), endpoint=front.url)
        warehouse = served.warehouse("lake", profile, **{"storage-credential": credential})
        yield Lake(served, minio, front, bucket, warehouse)


def kill_while_it_creates(lake: Lake, name: str) -> str:
    """The key of the file that the server has written, and did not hear about before it was killed -9."""
    before = lake.objects()
    lake.front.concerns = lambda method, _: method == "PUT"
    lake.front.falls_ill(Illness(hangs=True, works=True))
    with ThreadPoolExecutor(1) as threads:
        unanswered = threads.submit(lake.served.create, lake.warehouse, name)
        deadline = time.monotonic() + 60
        while not (new := lake.objects() - before):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(lake.served.server.process.pid, signal.SIGKILL)
        with suppress(urllib3.exceptions.HTTPError):
            unanswered.result(60)
    lake.front.recovers()
    lake.served.server.restart()
    (key,) = new
    return key


def aged(lake: Lake, key: str) -> str:
    """Put the file where it would be had the server been killed two days ago; its new key."""
    client = lake.minio.client()
    text = client.get_object(Bucket=lake.bucket, Key=key)["Body"].read().decode()
    *_, folder, _, file = key.split("/")
    version, _, name = file.partition("-")
    for uuid in {folder, name.removesuffix(".metadata.json"), json.loads(text)["table-uuid"]}:
        then = str(earlier(UUID(uuid)))
        key, text = key.replace(uuid, then), text.replace(uuid, then)
    assert version == "00000"
    client.put_object(Bucket=lake.bucket, Key=key, Body=text.encode())
    return key


def earlier(uuid: UUID) -> UUID:
    """With an earlier time in it."""
    at = int((datetime.now(UTC) - AGE).timestamp() * 1000)
    return UUID(int=at << 80 | uuid.int & (1 << 80) - 1)


@pytest.mark.timeout(300)
def test_the_file_of_a_killed_creation_is_found_once_it_is_old(lake: Lake) -> None:
    key = kill_while_it_creates(lake, "orders")
    assert lake.served.names(lake.warehouse) == {"t"}
    assert lake.orphans("--older-than", "1") == []
    old = aged(lake, key)
    lake.minio.client().delete_object(Bucket=lake.bucket, Key=key)
    before = lake.objects()
    (found,) = lake.orphans()
    assert (found["location"], found["removed"]) == (f"s3://{lake.bucket}/{old}", False)
    assert lake.objects() == before
    (removed,) = lake.orphans("--remove")
    assert removed == found | {"removed": True}
    assert lake.objects() == before - {old}
    assert lake.orphans() == []
    assert lake.served.create(lake.warehouse, "orders").status == 200
    assert lake.served.load(lake.warehouse).status == lake.served.commit(lake.warehouse).status == 200
