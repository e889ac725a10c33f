"""A server as a process beside a store that fails: statuses have names, and other warehouses do not wait for it."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest
import urllib3

from standalone.commands import AUDIENCE
from tests.servers import sick_store
from tests.servers.issuer import run_issuer
from tests.servers.lakewarden_serve import LakewardenFailed, LakewardenServer, prepared
from tests.servers.sick_store import Illness, SickStore

TIMEOUT_S = 1.0
SETTINGS = {"RETRIES": "0", "REQUEST_TIMEOUT_S": str(TIMEOUT_S), "FAILURES_BEFORE_PAUSE": "3", "PAUSE_S": "1"}
SECRET = "a-secret-that-nobody-may-read"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
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
    """Answers of a server for its administrator; `ill` and `well` are warehouses with the table `t` in `ns`."""

    server: LakewardenServer
    token: str
    ill: str = ""
    well: str = ""

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(maxsize=40, retries=False, timeout=30.0)

    def ask(self, method: str, path: str, body: Any = None) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            method, f"{self.server.uri}{path}", json=body, headers={"Authorization": f"Bearer {self.token}"}
        )

    def warehouse(self, name: str, profile: dict[str, Any], **more: Any) -> str:
        body = {"warehouse-name": name, "storage-profile": profile, "delete-profile": {"type": "hard"}}
        answer = self.ask("POST", "/management/v1/warehouse", body | more)
        assert answer.status in {200, 201}, answer.data
        identifier = str(answer.json()["id"])
        assert self.ask("POST", f"/catalog/v1/{identifier}/namespaces", {"namespace": ["ns"]}).status == 200
        assert self.create(identifier, "t").status == 200
        return identifier

    def create(self, warehouse: str, name: str) -> urllib3.BaseHTTPResponse:
        body = {"name": name, "schema": SCHEMA}
        return self.ask("POST", f"/catalog/v1/{warehouse}/namespaces/ns/tables", body)

    def load(self, warehouse: str) -> urllib3.BaseHTTPResponse:
        return self.ask("GET", f"/catalog/v1/{warehouse}/namespaces/ns/tables/t")

    def commit(self, warehouse: str) -> urllib3.BaseHTTPResponse:
        update = {"action": "set-properties", "updates": {"at": str(time.monotonic_ns())}}
        body = {"requirements": [], "updates": [update]}
        return self.ask("POST", f"/catalog/v1/{warehouse}/namespaces/ns/tables/t", body)

    def sign(self, warehouse: str, store: SickStore) -> urllib3.BaseHTTPResponse:
        location = self.load(warehouse).json()["metadata"]["location"].removeprefix("s3:/")
        asked = {"region": "r", "method": "GET", "uri": f"{store.url}{location}/data/f.parquet", "headers": {}}
        return self.ask("POST", f"/catalog/{warehouse}/v1/aws/s3/sign", asked)

    def names(self, warehouse: str) -> set[str]:
        found = self.ask("GET", f"/catalog/v1/{warehouse}/namespaces/ns/tables").json()
        return {each["name"] for each in found["identifiers"]}


@pytest.fixture(scope="module")
def store() -> Iterator[SickStore]:
    with sick_store.start() as running:
        yield running


@pytest.fixture(scope="module")
def lake(store: SickStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with run_issuer(tmp_path_factory.mktemp("issuer") / "state") as issuer:
        admin = issuer.identities.admin
        openid = {"LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url, "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE}
        storage = {f"LAKEWARDEN__STORAGE__{name}": value for name, value in SETTINGS.items()}
        with prepared(openid | storage) as server:
            server.bootstrap(f"oidc~{admin.client_id}")
            server.start()
            server.settings["LAKEWARDEN__SERVER__PORT"] = server.uri.rpartition(":")[2]  # for `doctor`
            lake = Lake(server, issuer.token_of(admin.client_id, admin.client_secret))
            lake.well = lake.warehouse("well", {"type": "local", "base-path": str(server.local_root / "well")})
            lake.ill = lake.warehouse("ill", BUCKET | {"endpoint": store.url}, **{"storage-credential": KEYS})
            yield lake
            assert SECRET not in server.log_text()


@pytest.fixture(autouse=True)
def cured(lake: Lake, store: SickStore) -> Iterator[None]:
    yield
    store.chronic = None
    deadline = time.monotonic() + 30
    while lake.commit(lake.ill).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("name", ILLNESSES)
def test_changes_are_refused_by_name_and_reads_and_signatures_go_on(lake: Lake, store: SickStore, name: str) -> None:
    illness, words = ILLNESSES[name]
    before = lake.load(lake.ill).json()["metadata-location"]
    store.chronic = illness
    changes: dict[str, Callable[[], urllib3.BaseHTTPResponse]] = {
        "commit": lambda: lake.commit(lake.ill),
        "create": lambda: lake.create(lake.ill, "new"),
    }
    for change in changes.values():
        answer = change()
        assert (answer.status, SECRET in answer.data.decode()) == (503, False), answer.data
        assert words in answer.json()["error"]["message"]
    assert lake.load(lake.ill).json()["metadata-location"] == before
    assert lake.sign(lake.ill, store).status == 200
    assert lake.names(lake.ill) == {"t"}


def test_a_new_warehouse_on_a_store_that_hangs_is_refused_in_time(lake: Lake, store: SickStore) -> None:
    store.chronic = Illness(hangs=True)
    profile = BUCKET | {"endpoint": store.url, "bucket": "other"}
    body = {"warehouse-name": "other", "storage-profile": profile, "storage-credential": KEYS}
    started = time.monotonic()
    answer = lake.ask("POST", "/management/v1/warehouse", body)
    assert time.monotonic() - started < 10 * TIMEOUT_S
    assert answer.status in {400, 503}, answer.data
    assert "did not answer in time" in answer.json()["error"]["message"]
    found = lake.ask("GET", "/management/v1/warehouse").json()["warehouses"]
    assert {each["name"] for each in found} == {"well", "ill"}


@pytest.mark.parametrize("name", ["hangs", "resets"])
def test_other_warehouses_do_not_wait(lake: Lake, store: SickStore, name: str) -> None:
    store.chronic, over = ILLNESSES[name][0], Event()

    def storm() -> list[int]:
        answers = []
        while not over.is_set():
            answers.append(lake.commit(lake.ill).status)
        return answers

    took: list[float] = []
    with ThreadPoolExecutor(16) as threads:
        storms = [threads.submit(storm) for _ in range(16)]
        until = time.monotonic() + 3
        while time.monotonic() < until:
            started = time.monotonic()
            assert lake.load(lake.well).status == 200
            assert lake.commit(lake.well).status == 200
            took.append(time.monotonic() - started)
            time.sleep(0.01)
        while "storages" not in (health := lake.ask("GET", "/health").json()):
            assert time.monotonic() < until + 30
            time.sleep(0.1)
        with pytest.raises(LakewardenFailed, match="1 left alone") as doctor:
            lake.server.run("doctor")
        over.set()
        statuses = {each for one in storms for each in one.result(60)}
    assert statuses == {503}
    assert len(took) > 3
    assert sorted(took)[len(took) * 9 // 10] < LATEST_S, sorted(took)[-5:]
    assert health["storages"] == "1 left alone"
    assert "warehouse 'ill'" in str(doctor.value)
    assert SECRET not in str(doctor.value)
