"""zstd and gzip of answers and requests."""

import gzip
import json
import uuid
from typing import Any

import pytest
import zstandard

from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer

BODY = {"namespace": ["packed"], "properties": {"a": "b" * 2000}}


def post(lake: Lake, body: bytes, coding: str, **headers: str) -> Answer:
    return lake.client.post(lake.path("namespaces"), body=body, headers={"content-encoding": coding, **headers})


def ask(lake: Lake, path: str, accepted: str) -> Answer:
    return lake.client.get(path, headers={"accept-encoding": accepted})


@pytest.fixture
def listed(lake: Lake) -> str:
    """A list that is worth compressing."""
    for number in range(60):
        lake.create_namespace("sales", f"a-rather-long-name-{number}")
    return lake.path("namespaces", parent="sales")


def test_lists_are_packed_as_the_client_prefers(lake: Lake, listed: str) -> None:
    plain = ask(lake, listed, "identity")
    for accepted, coding in (("zstd", "zstd"), ("gzip;q=0.5, zstd", "zstd"), ("gzip, zstd", "gzip")):
        answer = ask(lake, listed, accepted)
        assert answer.headers["content-encoding"] == coding
        assert "Accept-Encoding" in answer.headers["vary"]
        unpack: Any = zstandard.decompress if coding == "zstd" else gzip.decompress
        assert unpack(answer.body) == plain.body
        assert len(answer.body) < len(plain.body)
    assert "content-encoding" not in plain.headers


def test_a_table_comes_as_stored_where_gzip_is_accepted(lake: Lake) -> None:
    lake.create_table("orders", properties={f"key-{number}": "v" * number for number in range(100)})
    plain = ask(lake, lake.table("orders"), "identity").body
    both = ask(lake, lake.table("orders"), "zstd, gzip;q=0.1")
    assert both.headers["content-encoding"] == "gzip"
    assert gzip.decompress(both.body) == plain
    alone = ask(lake, lake.table("orders"), "zstd")
    assert alone.headers["content-encoding"] == "zstd"
    assert alone.headers["vary"] == both.headers["vary"]
    assert zstandard.decompress(alone.body) == plain


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_packed_request_is_the_request(lake: Lake, coding: str) -> None:
    text = json.dumps(BODY).encode()
    key = {"idempotency-key": str(uuid.uuid4())}
    first = post(lake, gzip.compress(text) if coding == "gzip" else zstandard.compress(text), coding, **key)
    assert first.json()["properties"]["a"] == "b" * 2000
    # the same request in another coding is the same request
    assert post(lake, text, "identity", **key).body == first.body


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_bad_bodies(lake: Lake, coding: str) -> None:
    assert post(lake, b'{"namespace": ["x"]}', coding).error() == (400, "BadRequestException")
    bomb = bytes(33 * 1024 * 1024)
    packed = gzip.compress(bomb) if coding == "gzip" else zstandard.compress(bomb)
    assert post(lake, packed, coding).error() == (413, "PayloadTooLargeException")
    assert lake.client.head(lake.namespace("x")).status == 404


def test_an_unknown_coding_is_named(lake: Lake) -> None:
    answer = post(lake, json.dumps(BODY).encode(), "br")
    assert answer.error() == (400, "BadRequestException")
    assert "'br'" in answer.message()


def test_a_body_is_not_unpacked_for_strangers(lake: Lake) -> None:
    nobody = lake.as_user("expired")
    assert post(nobody, b"no gzip", "gzip").error() == (401, "NotAuthorizedException")


def test_the_management_api_reads_them_too(lake: Lake) -> None:
    body = gzip.compress(b'{"project-name": 7, "unknown": 1}')
    answer = lake.client.post("/management/v1/project", body=body, headers={"content-encoding": "gzip"})
    assert answer.error() == (400, "BadRequestException")
    assert "unknown" in answer.message()
