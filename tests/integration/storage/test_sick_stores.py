"""Stores that fail in the middle, through the whole product: what users read, and what is left in rows and files."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from catalog.services import staged_creations
from lakewarden import backends, config
from lakewarden.secrets.models import Secret
from lakewarden.storage.interface import StorageError
from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.integration.tasks.purges import ledger, run, sql
from tests.integration.tasks.workers import wait_for, worker
from tests.servers import sick_store
from tests.servers.asgi_client import Answer, AsgiClient
from tests.servers.sick_store import Illness, SickStore

WAREHOUSES = "/management/v1/warehouse"
SECRET = "a-secret-that-nobody-may-read"
ILLNESSES = {
    "denied": (Illness(403, "AccessDenied"), "s3:PutObject"),
    "no bucket": (Illness(404, "NoSuchBucket"), "the bucket does not exist; check bucket and endpoint"),
    "clock": (Illness(403, "RequestTimeTooSkewed"), "synchronize"),
    "too many": (Illness(429, "TooManyRequests"), "429 TooManyRequests; try again later"),
    "busy": (Illness(503, "SlowDown"), "fewer requests"),
    "hangs": (Illness(hangs=True), "did not answer in time"),
    "resets": (Illness(resets=True), "cannot be reached"),
}
LOST = {
    "500": Illness(500, "InternalError", works=True),
    "hangs": Illness(hangs=True, works=True),
    "resets": Illness(resets=True, works=True),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    few = {"RETRIES": "1", "RETRY_PAUSE_S": "0.01", "REQUEST_TIMEOUT_S": "0.5", "FAILURES_BEFORE_PAUSE": "1000"}
    for name, value in few.items():
        monkeypatch.setenv(f"{config.PREFIX}STORAGE__{name}", value)
    config.current.cache_clear()
    # a breaker of a test before this one counts by other settings, and may leave the store alone
    backends._breaker.cache_clear()
    yield
    config.current.cache_clear()
    backends._breaker.cache_clear()


@pytest.fixture
def sick() -> Iterator[SickStore]:
    with sick_store.start() as store:
        yield store


def create(admin: AsgiClient, sick: SickStore, name: str = "ill") -> Answer:
    profile = {"type": "s3", "bucket": f"lake-{name}", "region": "r", "endpoint": sick.url, "flavor": "s3-compat"}
    credential = {"type": "s3", "credential-type": "access-key", "access-key-id": "k", "secret-access-key": SECRET}
    body = {
        "warehouse-name": name,
        "storage-profile": {**profile, "sts-enabled": False},
        "storage-credential": credential,
        "delete-profile": {"type": "hard"},
    }
    return admin.post(WAREHOUSES, body)


def made(admin: AsgiClient, sick: SickStore, name: str = "ill") -> Lake:
    answer = create(admin, sick, name)
    assert answer.status in {200, 201}, answer.body
    lake = Lake(admin, str(answer.json().get("warehouse-id") or answer.json()["id"]))
    assert lake.create_namespace("sales").status == 200
    for table in ("a", "b"):
        assert lake.create_table(table).status == 200
    return lake


@pytest.fixture
def lake(admin: AsgiClient, sick: SickStore) -> Lake:
    """Two tables on a store that is well, until it falls ill."""
    return made(admin, sick)


def transaction(lake: Lake) -> Answer:
    changes = [
        {"identifier": identifier(name), "requirements": [], "updates": [set_properties(color="red")]} for name in "ab"
    ]
    return lake.client.post(lake.path("transactions", "commit"), {"table-changes": changes})


Action = Callable[[Lake], Answer]
ACTIONS: dict[str, Action] = {
    "create": lambda lake: lake.create_table("new"),
    "commit": lambda lake: lake.commit("a", set_properties(color="red")),
    "transaction": transaction,
    "view": lambda lake: lake.create_view("seen"),
}
CHOSEN = "s3://lake-ill/chosen"


def pointers(lake: Lake) -> list[tuple[Any, ...]]:
    return sql("select kind, name, metadata_location, version from tabular order by id")


def files_in_use(sick: SickStore, lake: Lake) -> set[str]:
    return {f"/{location.removeprefix('s3://')}" for _, _, location, _ in pointers(lake)} & sick.objects.keys()


def says(answer: Answer, words: str) -> None:
    assert answer.status in {400, 503}, answer.body
    assert words in answer.message()
    assert SECRET not in answer.body.decode()


@pytest.mark.parametrize("name", ILLNESSES)
def test_a_warehouse_is_created_whole_or_not_at_all(admin: AsgiClient, sick: SickStore, name: str) -> None:
    sick.chronic, words = ILLNESSES[name]
    says(create(admin, sick), words)
    assert [each["name"] for each in admin.get(WAREHOUSES).json()["warehouses"] if each["name"] == "ill"] == []
    assert not Secret.objects.exists()
    sick.chronic = None
    assert create(admin, sick).status in {200, 201}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", ILLNESSES)
def test_a_change_whose_file_is_not_written_changes_nothing(
    sick: SickStore, lake: Lake, name: str, action: str
) -> None:
    before = pointers(lake)
    sick.chronic, words = ILLNESSES[name]
    says(ACTIONS[action](lake), words)
    assert pointers(lake) == before
    sick.chronic = None
    assert ACTIONS[action](lake).status in {200, 204}
    assert len(files_in_use(sick, lake)) == len(pointers(lake))


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", LOST)
def test_a_change_whose_answer_from_the_store_was_lost_is_made(
    sick: SickStore, lake: Lake, name: str, action: str
) -> None:
    sick.illnesses.append(LOST[name])
    assert ACTIONS[action](lake).status in {200, 204}
    assert len(files_in_use(sick, lake)) == len(pointers(lake))


@pytest.mark.parametrize("name", ["denied", "busy", "hangs", "resets"])
def test_a_chosen_place_is_not_taken_from_a_store_that_cannot_be_asked(sick: SickStore, lake: Lake, name: str) -> None:
    sick.chronic = ILLNESSES[name][0]
    for staged in (True, False):
        answer = lake.create_table("new", location=CHOSEN, stage_create=staged)
        assert answer.status == 503
        assert "was c" in answer.message()  # nothing was changed, or created
    assert sql("select location from reserved_location where kind = 'staged'") == []
    sick.chronic = None
    assert lake.create_table("new", location=CHOSEN).status == 200


def purge_task(lake: Lake) -> UUID:
    assert lake.client.delete(lake.table("a", purgeRequested="true")).status == 204
    (task, *_) = sql("select id from task where queue_name = 'tabular_purge' and outcome is null order by id desc")[0]
    return UUID(str(task))


@pytest.mark.parametrize("name", ["denied", "busy", "hangs", "resets", "answer lost"])
def test_a_purge_that_fails_in_the_middle_goes_on_and_counts_exactly(sick: SickStore, lake: Lake, name: str) -> None:
    for number in range(5):
        assert lake.commit("a", set_properties(number=str(number))).status == 200
    total, kept = len([each for each in sick.objects if "/metadata/" in each]), 1
    task = purge_task(lake)
    illness = LOST["resets"] if name == "answer lost" else ILLNESSES[name][0]
    sick.on["POST"] = illness  # the removal
    with pytest.raises(StorageError):
        run(task)
    sick.on.clear()
    run(task)
    assert ledger(task).files == total - kept
    assert len([each for each in sick.objects if "/metadata/" in each]) == kept


def test_one_sick_bucket_takes_no_thread_from_another(admin: AsgiClient, sick: SickStore, lake: Lake) -> None:
    with sick_store.start() as healthy:
        well = made(admin, healthy, "well")
        sick.chronic = Illness(hangs=True)
        with ThreadPoolExecutor(12) as threads:
            stuck = [threads.submit(lake.commit, name, set_properties(n=str(n))) for n in range(6) for name in "ab"]
            answered = [well.commit("a", set_properties(n=str(number))).status for number in range(20)]
            assert answered == [200] * 20
            assert {each.result(60).status for each in stuck} == {503}


@pytest.mark.parametrize("name", ["busy", "hangs"])
def test_an_expiry_of_one_store_does_not_stop_the_others(
    admin: AsgiClient, sick: SickStore, lake: Lake, name: str
) -> None:
    with sick_store.start() as healthy:
        well = made(admin, healthy, "well")
        for each in (lake, well):
            assert each.create_table("staged", stage_create=True).status == 200
        sql("update reserved_location set expires_at = now() - interval '1 second' where kind = 'staged'")
        sick.chronic = ILLNESSES[name][0]
        assert staged_creations.end_expired() == 2
    assert [kind for (kind,) in sql("select kind from reserved_location")] == ["released"]


def test_purges_of_a_store_that_hangs_do_not_stop_those_of_others(
    admin: AsgiClient, sick: SickStore, lake: Lake, tmp_path: Path
) -> None:
    with sick_store.start() as healthy:
        well = made(admin, healthy, "well")
        for number in range(8):
            assert lake.create_table(f"t{number}").status == 200
            assert lake.client.delete(lake.table(f"t{number}", purgeRequested="true")).status == 204
        ill = open_purges()
        purge_task(well)
        sick.chronic = Illness(hangs=True)
        log = tmp_path / "worker.log"
        with worker(log, LAKEWARDEN__WORKER__TASKS_AT_ONCE="2", LAKEWARDEN__STORAGE__FAILURES_BEFORE_PAUSE="3"):
            wait_for(lambda: open_purges() == ill, what="the purge of the healthy store", log=log)
        sick.over.set()


def open_purges() -> set[UUID]:
    return {task for (task,) in sql("select id from task where queue_name = 'tabular_purge' and outcome is null")}
