"""Made-up names and tokens use no memory permanently, and nothing is read for a caller who may not have it."""

import gc
import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from lakewarden import asgi
from lakewarden.http import request_threads
from lakewarden.storage.local import LocalStorage
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

MIB = 1024 * 1024
LONG = 50_000
"""Characters: as many as fit into the headers of a request."""


def long_paths(lake: Lake, number: int) -> None:
    for place in ("tables/a", "tables", ""):
        path = f"{lake.path('namespaces')}/{number:06}{'n' * LONG}/{place}".rstrip("/")
        assert AsgiClient().get(path).status == 401


def long_headers(lake: Lake, number: int) -> None:
    codings = ",".join(f"{number}-{each}" for each in range(LONG // 10))
    assert lake.client.get("/management/v1/openapi.json", headers={"accept-encoding": codings}).status in {200, 404}
    assert lake.client.get(lake.path("namespaces"), headers={"accept-encoding": codings}).status == 200


def long_locations(lake: Lake, number: int) -> None:
    location = f"file:///{number:06}{'l' * MIB}"
    assert lake.as_user("outsider").create_table("t", within="outside", location=location).status == 400


@pytest.mark.parametrize("attack", [long_paths, long_headers, long_locations])
def test_what_a_caller_makes_up_is_not_remembered(
    lake: Lake, outsider: Lake, attack: Callable[[Lake, int], None]
) -> None:
    """Rights: none, not even a token; a token; create on `outside`."""
    assert outsider.warehouse_id == lake.warehouse_id
    for number in range(20):
        attack(lake, number)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20, 80):
            attack(lake, number)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 4 * MIB


@pytest.mark.parametrize("caller", ["stranger", "outsider"])
def test_a_body_of_millions_of_values_is_not_decoded(lake: Lake, outsider: Lake, caller: str) -> None:
    """Rights: none, only a token; create on `outside`."""
    assert outsider.create_table("mine", within="outside").status == 200
    million = b'{"requirements":[],"updates":[' + b"{}," * 1_000_000 + b"{}]}"
    answer = lake.as_user(caller).client.call(
        "POST",
        lake.table("mine", within="outside"),
        body=gzip.compress(million),
        headers={"content-encoding": "gzip"},
    )
    assert answer.status == 413
    assert "max_body_values" in answer.message()


@pytest.mark.parametrize(
    ("entries", "status", "words"),
    [(200_000, 413, "max_body_values"), (90_000, 400, "writes has 90000 entries"), (10_000, 400, "writes[9]")],
)
def test_a_long_list_of_nonsense_is_not_validated_one_by_one(lake: Lake, entries: int, status: int, words: str) -> None:
    """Rights: none, only a token."""
    body = gzip.compress(b'{"writes":[' + b"0," * (entries - 1) + b"0]}")
    answer = lake.as_user("stranger").client.call(
        "POST",
        f"/management/v1/warehouse/{lake.warehouse_id}/grants",
        body=body,
        headers={"content-encoding": "gzip"},
    )
    assert (answer.status, words in answer.message()) == (status, True), answer.body[:200]
    assert len(answer.body) < 2000


def test_a_request_that_has_waited_is_not_begun_when_its_callers_answers_have_piled_up(
    lake: Lake, reader: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: select on `sales.orders`; answers to earlier requests are not read."""
    assert reader.load("orders")
    shares, run = asgi._unread._shares, request_threads.THREADS.run

    async def waiting(caller: str, work: Callable[..., Answer], *arguments: object) -> Answer:
        shares.force(caller, shares._total)  # unread answers have piled up meanwhile
        try:
            return await run(caller, work, *arguments)
        finally:
            shares.give_back(caller, shares._total)

    monkeypatch.setattr(request_threads.THREADS, "run", waiting)
    answer = reader.client.get(reader.table("orders", snapshots="refs"))
    assert answer.error() == (503, "ServiceUnavailableException")
    assert "answers wait to be read" in answer.message()


def test_a_file_of_others_is_not_read_to_be_registered(
    lake: Lake, outsider: Lake, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: create on `outside`."""
    table = lake.create_table("orders").json()
    gone = lake.create_table("gone").json()
    assert lake.client.delete(lake.table("gone")).status == 204
    namespace = Path(table["metadata"]["location"].removeprefix("file://")).parent
    (namespace / "loose.metadata.json").write_text("{}")
    read: list[str] = []
    monkeypatch.setattr(LocalStorage, "read", lambda _, location, **__: read.append(location))
    for location in (
        table["metadata-location"],
        gone["metadata-location"],
        f"file://{namespace}/loose.metadata.json",
        f"file://{namespace}/{uuid4()}/metadata/missing.metadata.json",
    ):
        body = {"name": "mine", "metadata-location": location}
        answer = outsider.client.post(outsider.namespace("outside", "register"), body)
        assert answer.error() == (409, "AlreadyExistsException")
    assert read == []
