"""A server as a process whose token service fails: what needs new keys is refused by name, and all else goes on."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest
import urllib3

from tests.contracts.storage.s3_warehouse import sent
from tests.contracts.storage.served_leaks import leaks
from tests.integration.storage.served_lake import ServedLake, serve_lake
from tests.servers import otlp, sick_front
from tests.servers.minio import MinioServer, minio
from tests.servers.s3_server import REGION
from tests.servers.sick_front import SickFront
from tests.servers.sick_store import Illness

__all__ = ["minio"]

SETTINGS = {"RETRIES": "0", "REQUEST_TIMEOUT_S": "3", "FAILURES_BEFORE_PAUSE": "3", "PAUSE_S": "1"}
LATEST_S = 1.0
"""For a load and a commit of another warehouse, on a machine that may be busy with other tests."""
MEANS = ("vended-credentials", "remote-signing")
STORM = 20
"""Requests at once, more than the server has threads."""
SILENT = "does not answer"
ILLNESSES = {
    "denied": (Illness(403, "AccessDenied"), "is not right, or its user may not do this"),
    "too many": (Illness(429, "TooManyRequests"), "too many requests"),
    "busy": (Illness(503, "SlowDown"), "too many requests"),
    "broken": (Illness(500, "InternalError"), "InternalError"),
    "hangs": (Illness(hangs=True), SILENT),
    "resets": (Illness(resets=True), SILENT),
}


@dataclass
class Lake:
    """Engines' keys for `ill` and `twin`, and the server's own for `role`, come through `sts`; those of `well` do not.

    `other` is a caller who uses `well` only.
    """

    served: ServedLake
    other: ServedLake
    sts: SickFront
    store: str
    ill: str
    twin: str
    role: str
    well: str
    issued: dict[str, str] = field(default_factory=dict)
    """What engines have received, and nobody else may see."""

    def keys(self, answer: urllib3.BaseHTTPResponse) -> str:
        """The id of those that it holds."""
        assert answer.status == 200, answer.data
        (found,) = answer.json()["storage-credentials"]
        identifier: str = found["config"]["s3.access-key-id"]
        for name in ("s3.secret-access-key", "s3.session-token"):
            self.issued[f"{name} of {identifier}"] = found["config"][name]
        return identifier


@pytest.fixture(scope="module")
def lake(minio: MinioServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    name = minio.new_bucket()
    owner = minio.new_owner(name)
    with otlp.start() as collector, sick_front.before(minio.address) as sts, ExitStack() as stack:
        traced = {"LAKEWARDEN__TRACING__ENDPOINT": collector.url, "LAKEWARDEN__TRACING__SAMPLE_RATIO": "1"}
        settings = traced | {"LAKEWARDEN__LOG__LEVEL": "DEBUG"}
        served = stack.enter_context(serve_lake(tmp_path_factory.mktemp("lake"), SETTINGS, **settings))

        def warehouse(prefix: str, **more: Any) -> str:
            profile, credential = sent(minio, name, owner, **{"key-prefix": prefix, "sts-enabled": True} | more)
            return served.warehouse(prefix, profile, **{"storage-credential": credential})

        ill = {"sts-endpoint": sts.url}
        role = {"sts-enabled": False, "assume-role-arn": "arn:aws:iam::123456789012:role/lake", **ill}
        well = warehouse("well")
        found = Lake(
            served,
            served.for_engine(well),
            sts,
            minio.endpoint,
            ill=warehouse("ill", **ill),
            twin=warehouse("twin", **ill),
            role=warehouse("role", **role),
            well=well,
        )
        yield found
        assert found.issued
        served.server.stop()  # sends the spans that wait
        served.server.start()
        assert any(each.name.endswith("/v1/aws/s3/sign") for each in collector.spans)
        secrets = {"the warehouse's key": owner.secret_access_key, **found.issued}
        assert leaks(served, secrets, traces=collector.bodies) == []


@pytest.fixture(autouse=True)
def cured(lake: Lake) -> Iterator[None]:
    yield
    lake.sts.recovers()
    until(lambda: lake.served.load(lake.ill, fresh(lake, lake.ill)).status == 200)
    assert "storages" not in lake.served.ask("GET", "/health").json()


def until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def fresh(lake: Lake, warehouse: str) -> str:
    """A new table for which no keys were issued."""
    name = f"t{time.monotonic_ns()}"
    answer = lake.served.create(warehouse, name, access="client-managed")
    assert answer.status == 200, answer.data
    return name


@pytest.mark.parametrize("name", ILLNESSES)
def test_new_keys_are_refused_by_name_and_all_else_goes_on(lake: Lake, name: str) -> None:
    served, before, new = lake.served, lake.keys(lake.served.load(lake.ill)), fresh(lake, lake.ill)
    illness, words = ILLNESSES[name]
    lake.sts.falls_ill(illness)
    refused = {
        "load": served.load(lake.ill, new),
        "create": served.create(lake.ill, "more"),
        "credentials": served.ask("GET", f"{served.tables(lake.ill)}/{new}/credentials"),
    }
    for what, answer in refused.items():
        assert (answer.status, words in answer.json()["error"]["message"]) == (503, True), (what, answer.data)
    assert "was not created" in refused["create"].json()["error"]["message"]
    assert "more" not in served.names(lake.ill)
    assert lake.keys(served.load(lake.ill)) == before
    assert lake.keys(served.ask("GET", f"{served.tables(lake.ill)}/t/credentials")) == before
    assert served.commit(lake.ill).status == served.commit(lake.ill, new).status == 200
    assert served.load(lake.ill, new, access="client-managed").status == 200
    assert served.sign(lake.ill, served.file_of(lake.ill, lake.store), region=REGION).status == 200


def test_an_answer_in_drips_ends_at_the_time_out(lake: Lake) -> None:
    new = fresh(lake, lake.ill)
    lake.sts.falls_ill(None, drips=True)
    started = time.monotonic()
    answer = lake.served.load(lake.ill, new)
    assert (answer.status, SILENT in answer.json()["error"]["message"]) == (503, True), answer.data
    assert time.monotonic() - started < 15


def test_two_warehouses_without_a_token_service_take_no_thread_from_others(lake: Lake) -> None:
    served, kept = lake.served, lake.keys(lake.served.load(lake.ill))
    new = [(warehouse, fresh(lake, warehouse)) for _ in range(STORM // 2) for warehouse in (lake.ill, lake.twin)]
    lake.sts.falls_ill(Illness(hangs=True))
    statuses, health = storm(lake, lambda number: served.load(*new[number]).status)
    assert statuses == {503}
    assert health["storages"] == "1 left alone"
    assert lake.keys(served.load(lake.ill)) == kept


def test_signatures_that_wait_for_a_token_service_take_no_thread_from_others(lake: Lake) -> None:
    served = lake.served
    file = served.file_of(lake.role, lake.store)
    lake.sts.falls_ill(Illness(hangs=True))
    served.server.restart()  # so that the server has no keys of the role
    statuses, _ = storm(lake, lambda _: served.sign(lake.role, file, region=REGION).status)
    assert statuses == {503}
    lake.sts.recovers()
    until(lambda: served.sign(lake.role, file, region=REGION).status == 200)


def storm(lake: Lake, use: Any) -> tuple[set[int], dict[str, str]]:
    """Statuses of requests that many clients send again and again; loads and commits elsewhere do not wait for them."""
    served, over, took = lake.served, Event(), list[float]()

    def again(number: int) -> set[int]:
        found: set[int] = set()
        while not over.is_set():
            found.add(use(number))
        return found

    with ThreadPoolExecutor(STORM) as threads:
        storms = [threads.submit(again, number) for number in range(STORM)]
        end = time.monotonic() + 6
        while time.monotonic() < end:
            started = time.monotonic()
            assert lake.other.load(lake.well, access=MEANS[len(took) % 2]).status == 200
            assert lake.other.commit(lake.well).status == 200
            took.append(time.monotonic() - started)
            time.sleep(0.02)
        health = dict(served.ask("GET", "/health").json())
        over.set()
        statuses = {each for one in storms for each in one.result(60)}
    assert sorted(took)[len(took) * 9 // 10] < LATEST_S, sorted(took)[-5:]
    return statuses, health
