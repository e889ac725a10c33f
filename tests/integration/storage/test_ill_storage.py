"""A bucket that hangs costs the others nothing: its calls are few, end soon, and stop after a while."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lakewarden import backends, config
from lakewarden.doctor import left_alone
from lakewarden.events import metrics
from lakewarden.http.health import answer
from lakewarden.storage import breaker
from lakewarden.storage.interface import Storage, StorageUnavailable
from lakewarden.storage.profiles import parse_profile
from tests.servers import sick_store
from tests.servers.sick_store import Illness, SickStore

SETTINGS = {
    "MAX_CALLS_AT_ONCE": "4",
    "RETRIES": "0",
    "REQUEST_TIMEOUT_S": "0.3",
    "FAILURES_BEFORE_PAUSE": "5",
    "PAUSE_S": "0.5",
}


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"{config.PREFIX}STORAGE__{name}", value)
    config.current.cache_clear()
    yield
    config.current.cache_clear()


@pytest.fixture
def sick() -> Iterator[SickStore]:
    with sick_store.start() as store:
        store.objects |= {"/lake-ill/f": b"here", "/lake-well/f": b"here"}
        yield store


def bucket(url: str, name: str) -> Storage:
    fields = {"type": "s3", "bucket": name, "region": "r", "endpoint": url, "flavor": "s3-compat", "sts-enabled": False}
    profile = parse_profile(fields)
    keys = {"credential-type": "access-key", "access-key-id": "k", "secret-access-key": "s"}
    return backends.storage(profile, profile.parse_credential(keys))


def read(store: Storage, name: str) -> Callable[[], bytes]:
    return lambda: store.read(f"s3://{name}/f", limit=4)


def health() -> dict[str, str]:
    _, _, body = asyncio.run(answer("GET", b"/health"))
    return dict(json.loads(body))


def refused(call: Future[bytes]) -> bool:
    return isinstance(call.exception(10), StorageUnavailable)


def test_a_hanging_bucket_holds_only_its_own_places(sick: SickStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{config.PREFIX}STORAGE__REQUEST_TIMEOUT_S", "20")
    config.current.cache_clear()
    with sick_store.start() as well, ThreadPoolExecutor(8) as threads:
        well.objects["/lake-held/f"] = b"here"
        sick.chronic = Illness(hangs=True)
        hanging, other = bucket(sick.url, "lake-hangs"), bucket(well.url, "lake-held")
        ill = [threads.submit(read(hanging, "lake-hangs")) for _ in range(20)]
        beside = [threads.submit(read(other, "lake-held")) for _ in range(20)]
        assert [call.result(10) for call in beside] == [b"here"] * 20
        assert [call.done() for call in ill].count(False) == 4
        sick.over.set()
        assert all(refused(call) for call in ill)


def test_a_bucket_that_fails_is_left_alone_and_comes_back_by_itself(sick: SickStore, database: None) -> None:
    store = bucket(sick.url, "lake-ill")
    sick.chronic = Illness()
    for _ in range(50):
        with pytest.raises(StorageUnavailable):
            store.read("s3://lake-ill/f", limit=4)
    assert len(sick.asked) == 5
    with pytest.raises(StorageUnavailable, match="failed 5 times in a row"):
        store.is_empty("s3://lake-ill/t")
    (told,) = [each for each in breaker.left_alone() if each.place == "s3://lake-ill"]
    assert told.refused == 46
    (finding,) = [
        each for each in left_alone.examine(config.current()) if each.name == "warehouse storage s3://lake-ill"
    ]
    assert "46 calls were refused" in finding.sentence
    assert "The last fault: The storage refused reading s3://lake-ill/f" in finding.sentence
    page = metrics.exposition().decode()
    assert 'lakewarden_storage_refused_calls{location="s3://lake-ill"} 46.0' in page
    assert health()["storages"] == f"{len(breaker.left_alone())} left alone"
    assert "lake-ill" not in str(health())
    sick.chronic = None
    deadline = time.monotonic() + 10
    while True:
        try:
            assert store.read("s3://lake-ill/f", limit=4) == b"here"
            break
        except StorageUnavailable:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert len(sick.asked) == 6
    assert "s3://lake-ill" not in [each.place for each in breaker.left_alone()]
    assert "s3://lake-ill" not in metrics.exposition().decode()
