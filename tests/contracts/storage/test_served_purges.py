"""A worker as a process whose bucket fails in the middle of a purge: the task says so, goes on, and counts exactly."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.storage.many_objects import fill
from tests.contracts.storage.s3_warehouse import sent
from tests.contracts.storage.served_leaks import leaks
from tests.integration.storage.served_lake import WAREHOUSES, ServedLake, serve_lake
from tests.integration.tasks.workers import worker
from tests.servers import sick_front
from tests.servers.minio import MinioServer, minio
from tests.servers.sick_front import SickFront
from tests.servers.sick_store import Illness

__all__ = ["minio"]

SETTINGS = {"RETRIES": "0", "REQUEST_TIMEOUT_S": "4", "FAILURES_BEFORE_PAUSE": "1000"}
OBJECTS = 1100
"""More than a page of 1,000."""
ILLNESSES = {
    "denied": (Illness(403, "AccessDenied"), "s3:DeleteObject"),
    "no bucket": (Illness(404, "NoSuchBucket"), "the bucket does not exist"),
    "too many": (Illness(429, "TooManyRequests"), "429 TooManyRequests; try again later"),
    "busy": (Illness(503, "SlowDown"), "fewer requests"),
    "hangs": (Illness(hangs=True), "did not answer in time"),
    "answer lost": (Illness(resets=True, works=True), "cannot be reached"),
}


class SecondRemoval:
    """Concerns removals of several objects from the second one on."""

    def __init__(self) -> None:
        self.removals = 0

    def __call__(self, method: str, path: str) -> bool:
        if method != "POST" or "?delete" not in path:
            return False
        self.removals += 1
        return self.removals > 1


@dataclass
class Lake:
    served: ServedLake
    minio: MinioServer
    front: SickFront
    bucket: str
    warehouse: str
    worker_log: Path

    def objects(self) -> set[str]:
        return set(self.minio.keys_in(self.bucket))

    def purge(self) -> dict[str, Any]:
        """The newest one, with its attempts."""
        newest = next(each for each in self.served.tasks(self.warehouse) if each["queue-name"] == "tabular_purge")
        answer = self.served.ask("GET", f"{WAREHOUSES}/{self.warehouse}/task/by-id/{newest['task-id']}")
        assert answer.status == 200, answer.data
        return dict(answer.json())

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, (self.purge(), self.worker_log.read_text()[-3000:])
            time.sleep(0.2)


@pytest.fixture(scope="module")
def lake(minio: MinioServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    bucket, folder = minio.new_bucket(), tmp_path_factory.mktemp("lake")
    owner, log = minio.new_owner(bucket), folder / "worker.log"
    with (
        sick_front.before(minio.address) as front,
        serve_lake(folder, SETTINGS, LAKEWARDEN__LOG__LEVEL="DEBUG") as served,
    ):
        profile, credential = sent(minio, bucket, owner, endpoint=front.url)
        warehouse = served.warehouse("ill", profile, **{"storage-credential": credential})
        with worker(log, **served.server.settings):
            yield Lake(served, minio, front, bucket, warehouse, log)
        assert leaks(served, {"the warehouse's key": owner.secret_access_key}, log) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ILLNESSES)
def test_a_purge_says_what_stopped_it_and_goes_on_exactly(lake: Lake, name: str) -> None:
    illness, words = ILLNESSES[name]
    created = lake.served.create(lake.warehouse, "orders")
    assert created.status == 200, created.data
    kept, location = lake.objects(), created.json()["metadata"]["location"].removeprefix(f"s3://{lake.bucket}/")
    kept -= {each for each in kept if each.startswith(location)}
    fill(lake.minio, lake.bucket, [f"{location}/data/{number}.parquet" for number in range(OBJECTS)])
    lake.front.concerns = SecondRemoval()
    lake.front.falls_ill(illness)
    assert lake.served.drop(lake.warehouse, "orders").status == 204

    # other attempts may fail because a busy machine answers late
    lake.until(
        lambda: any(each["status"] == "FAILED" and words in each["message"] for each in lake.purge()["attempts"])
    )
    assert lake.served.load(lake.warehouse).status == lake.served.commit(lake.warehouse).status == 200

    lake.front.recovers()
    lake.until(lambda: lake.purge()["status"] == "SUCCESS")
    assert lake.purge()["execution-details"]["files-removed"] == OBJECTS + 1
    assert {each for each in lake.objects() if each.startswith(location)} == set()
    assert kept <= lake.objects()
