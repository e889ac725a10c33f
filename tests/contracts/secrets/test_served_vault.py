"""A server as a process whose Vault is sealed, or hangs, in the middle: what is at hand goes on, the rest is named."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from tests.contracts.storage.served_leaks import leaks
from tests.integration.storage.served_lake import WAREHOUSES, ServedLake, serve_lake
from tests.servers import openbao, otlp, sick_store
from tests.servers.openbao import FOLDER, MOUNT, PASSWORD, OpenBao
from tests.servers.sick_store import SickStore

LATEST_S = 1.0
"""For a load and a commit of another warehouse, on a machine that may be busy with other tests."""
STORM = 20
SECRET, NEW_SECRET = "a-secret-that-nobody-may-read", "another-secret-of-this-kind"
PROFILE = {"type": "s3", "bucket": "lake", "region": "r", "flavor": "s3-compat", "sts-enabled": False}


def credential(secret: str = SECRET) -> dict[str, str]:
    return {"type": "s3", "credential-type": "access-key", "access-key-id": "k", "secret-access-key": secret}


@dataclass
class Lake:
    """The credential of `vaulted` is in Vault; `plain` needs none, and `other` is a caller who uses only that."""

    served: ServedLake
    other: ServedLake
    store: SickStore
    bao: OpenBao
    vaulted: str
    plain: str

    def __post_init__(self) -> None:
        self.file = self.served.file_of(self.vaulted, self.store.url)

    def sign(self) -> int:
        return self.served.sign(self.vaulted, self.file, region="r").status

    def secrets(self) -> int:
        found: dict[str, Any] = self.bao.call("LIST", f"{MOUNT}/metadata/{FOLDER}")["data"]
        (installation,) = found["keys"]
        folder: dict[str, Any] = self.bao.call("LIST", f"{MOUNT}/metadata/{FOLDER}/{installation.strip('/')}")["data"]
        return len(folder["keys"])

    def managed(self) -> dict[str, Any]:
        """Changes that need a secret to be written, and their answers."""
        served, new = self.served, {"new-storage-credential": credential(NEW_SECRET)}
        profile = PROFILE | {"endpoint": self.store.url, "bucket": "other"}
        body = {"warehouse-name": "other", "storage-profile": profile, "storage-credential": credential()}
        return {
            "a warehouse": served.ask("POST", WAREHOUSES, body),
            "a credential": served.ask("POST", f"{WAREHOUSES}/{self.vaulted}/storage-credential", new),
        }


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with openbao.start() as bao, sick_store.start() as store, otlp.start() as collector:
        vault = {"URL": bao.url, "MOUNT": MOUNT, "PATH": FOLDER, "AUTH": "userpass", "USERNAME": "svc"}
        vault |= {"PASSWORD": PASSWORD, "TIMEOUT_S": "3"}
        settings = {f"LAKEWARDEN__SECRETS__VAULT__{name}": value for name, value in vault.items()}
        settings |= {"LAKEWARDEN__TRACING__ENDPOINT": collector.url, "LAKEWARDEN__TRACING__SAMPLE_RATIO": "1"}
        folder = tmp_path_factory.mktemp("lake")
        with serve_lake(
            folder, {}, LAKEWARDEN__SECRETS__BACKEND="vault", LAKEWARDEN__LOG__LEVEL="DEBUG", **settings
        ) as served:
            plain = served.warehouse("plain", {"type": "local", "base-path": str(served.server.local_root / "plain")})
            more = {"storage-credential": credential()}
            vaulted = served.warehouse("vaulted", PROFILE | {"endpoint": store.url}, **more)
            yield Lake(served, served.for_engine(plain), store, bao, vaulted, plain)
            secrets = {"the key": SECRET, "the new key": NEW_SECRET, "the password": PASSWORD, "the root": bao.root}
            served.server.stop()  # sends the spans that wait
            served.server.start()
            assert collector.bodies
            assert leaks(served, secrets, traces=collector.bodies) == []


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def storm(lake: Lake, *, while_it: Callable[[], None]) -> tuple[set[int], list[float]]:
    """Statuses of many commits at once, and how long loads and commits elsewhere took."""
    over, took = Event(), list[float]()

    def again() -> set[int]:
        found: set[int] = set()
        while not over.is_set():
            found.add(lake.served.commit(lake.vaulted).status)
            found.add(lake.sign())
        return found

    with ThreadPoolExecutor(STORM) as threads:
        storms = [threads.submit(again) for _ in range(STORM)]
        while_it()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            started = time.monotonic()
            assert lake.other.load(lake.plain).status == lake.other.commit(lake.plain).status == 200
            took.append(time.monotonic() - started)
            time.sleep(0.02)
        over.set()
        return {each for one in storms for each in one.result(60)}, sorted(took)


def test_a_seal_in_the_middle_stops_nothing_that_runs(lake: Lake) -> None:
    before = lake.secrets()
    assert lake.sign() == 200  # the secret is at hand from now on
    statuses, _ = storm(lake, while_it=lake.bao.seal)
    assert statuses == {200}
    refused = lake.managed()
    lake.bao.unseal()
    for what, answer in refused.items():
        assert (answer.status, "sealed" in answer.json()["error"]["message"]) == (503, True), (what, answer.data)
    assert lake.secrets() == before
    found = lake.served.ask("GET", WAREHOUSES).json()["warehouses"]
    assert {each["name"] for each in found} == {"plain", "vaulted"}
    assert lake.served.commit(lake.vaulted).status == 200


def test_a_server_that_starts_while_vault_is_sealed_serves_what_needs_no_secret(lake: Lake) -> None:
    lake.bao.seal()
    lake.served.server.restart()
    for answer in (lake.served.commit(lake.vaulted), lake.served.create(lake.vaulted, "new")):
        assert (answer.status, "sealed" in answer.json()["error"]["message"]) == (503, True), answer.data
    assert lake.served.load(lake.plain).status == lake.served.commit(lake.plain).status == 200
    assert lake.served.names(lake.vaulted) == {"t"}
    lake.bao.unseal()
    until(lambda: lake.served.commit(lake.vaulted).status == 200)


def test_a_vault_that_hangs_takes_no_thread_from_others(lake: Lake) -> None:
    lake.bao.pause()
    try:
        lake.served.server.restart()  # so that the server has no secret at hand
        statuses, took = storm(lake, while_it=lambda: None)
        (answer,) = [lake.served.commit(lake.vaulted)]
    finally:
        lake.bao.go_on()
    assert statuses <= {200, 503}
    assert "Vault" in answer.json()["error"]["message"]
    assert took[len(took) * 9 // 10] < LATEST_S, took[-5:]
    until(lambda: lake.served.commit(lake.vaulted).status == 200)
