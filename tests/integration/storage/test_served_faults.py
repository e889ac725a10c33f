"""A server as a process beside a store that fails: statuses have names, and other warehouses do not wait for it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import pytest

from tests.integration.storage.served_lake import ServedLake, serve_lake
from tests.servers import sick_store
from tests.servers.lakewarden_serve import LakewardenFailed
from tests.servers.sick_store import Illness, SickStore

TIMEOUT_S = 1.0
SETTINGS = {"RETRIES": "0", "REQUEST_TIMEOUT_S": str(TIMEOUT_S), "FAILURES_BEFORE_PAUSE": "3", "PAUSE_S": "1"}
SECRET = "a-secret-that-nobody-may-read"
BUCKET = {"type": "s3", "bucket": "lake", "region": "r", "flavor": "s3-compat", "sts-enabled": False}
KEYS = {"type": "s3", "credential-type": "access-key", "access-key-id": "k", "secret-access-key": SECRET}
ILLNESSES = {
    "denied": (Illness(403, "AccessDenied"), "s3:PutObject"),
    "no bucket": (Illness(404, "NoSuchBucket"), "the bucket does not exist"),
    "too many": (Illness(429, "TooManyRequests"), "429 TooManyRequests; try again later"),
    "busy": (Illness(503, "SlowDown"), "fewer requests"),
    "hangs": (Illness(hangs=True), "did not answer in time"),
    "resets": (Illness(resets=True), "cannot be reached"),
}
LATEST_S = 1.0
"""For a load from another warehouse, on a machine that may be busy with other tests."""


@dataclass
class Lake:
    """`ill` is a warehouse in the store, `well` one in a directory."""

    served: ServedLake
    ill: str
    well: str


@pytest.fixture(scope="module")
def store() -> Iterator[SickStore]:
    with sick_store.start() as running:
        yield running


@pytest.fixture(scope="module")
def lake(store: SickStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with serve_lake(tmp_path_factory.mktemp("lake"), SETTINGS) as served:
        well = served.warehouse("well", {"type": "local", "base-path": str(served.server.local_root / "well")})
        ill = served.warehouse("ill", BUCKET | {"endpoint": store.url}, **{"storage-credential": KEYS})
        yield Lake(served, ill, well)
        assert SECRET not in served.server.log_text()


@pytest.fixture(autouse=True)
def cured(lake: Lake, store: SickStore) -> Iterator[None]:
    yield
    store.chronic = None
    deadline = time.monotonic() + 30
    while lake.served.commit(lake.ill).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("name", ILLNESSES)
def test_changes_are_refused_by_name_and_reads_and_signatures_go_on(lake: Lake, store: SickStore, name: str) -> None:
    illness, words = ILLNESSES[name]
    before = lake.served.load(lake.ill).json()["metadata-location"]
    store.chronic = illness
    for answer in (lake.served.commit(lake.ill), lake.served.create(lake.ill, "new")):
        assert (answer.status, SECRET in answer.data.decode()) == (503, False), answer.data
        assert words in answer.json()["error"]["message"]
    assert lake.served.load(lake.ill).json()["metadata-location"] == before
    assert lake.served.sign(lake.ill, lake.served.file_of(lake.ill, store.url), region="r").status == 200
    assert lake.served.names(lake.ill) == {"t"}


def test_a_new_warehouse_on_a_store_that_hangs_is_refused_in_time(lake: Lake, store: SickStore) -> None:
    store.chronic = Illness(hangs=True)
    profile = BUCKET | {"endpoint": store.url, "bucket": "other"}
    body = {"warehouse-name": "other", "storage-profile": profile, "storage-credential": KEYS}
    started = time.monotonic()
    answer = lake.served.ask("POST", "/management/v1/warehouse", body)
    assert time.monotonic() - started < 10 * TIMEOUT_S
    assert answer.status in {400, 503}, answer.data
    assert "did not answer in time" in answer.json()["error"]["message"]
    found = lake.served.ask("GET", "/management/v1/warehouse").json()["warehouses"]
    assert {each["name"] for each in found} == {"well", "ill"}


@pytest.mark.parametrize("name", ["hangs", "resets"])
def test_other_warehouses_do_not_wait(lake: Lake, store: SickStore, name: str) -> None:
    store.chronic, over = ILLNESSES[name][0], Event()

    def storm() -> list[int]:
        answers = []
        while not over.is_set():
            answers.append(lake.served.commit(lake.ill).status)
        return answers

    took: list[float] = []
    with ThreadPoolExecutor(16) as threads:
        storms = [threads.submit(storm) for _ in range(16)]
        until = time.monotonic() + 3
        while time.monotonic() < until:
            started = time.monotonic()
            assert lake.served.load(lake.well).status == 200
            assert lake.served.commit(lake.well).status == 200
            took.append(time.monotonic() - started)
            time.sleep(0.01)
        while "storages" not in (health := lake.served.ask("GET", "/health").json()):
            assert time.monotonic() < until + 30
            time.sleep(0.1)
        with pytest.raises(LakewardenFailed, match="1 left alone") as doctor:
            lake.served.server.run("doctor")
        over.set()
        statuses = {each for one in storms for each in one.result(60)}
    assert statuses == {503}
    assert len(took) > 3
    assert sorted(took)[len(took) * 9 // 10] < LATEST_S, sorted(took)[-5:]
    assert health["storages"] == "1 left alone"
    assert "warehouse 'ill'" in str(doctor.value)
    assert SECRET not in str(doctor.value)
