"""A store that whoever creates a warehouse may choose: it costs the server no time, no memory, and leads nowhere."""

import re
import time
from collections.abc import Callable, Iterator
from itertools import count, repeat
from typing import Any
from unittest.mock import patch

import pytest

from lakewarden import config
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.profiles import parse_profile
from tests.servers import raw_server
from tests.servers.raw_server import Connection, RawServer
from tests.service_accounts import service_account

KEY = "aGlkZGVuIGtleQ=="
BASES = {"s3": "s3://lake/wh", "adls": "abfss://data@lakehouse.dfs.core.windows.net/wh", "gcs": "gs://lake/wh"}
ACCESS_KEY = {"credential-type": "access-key", "access-key-id": "k", "secret-access-key": KEY}
PATIENCE_S = 8


@pytest.fixture
def hostile() -> Iterator[RawServer]:
    with raw_server.start() as server:
        yield server


@pytest.fixture
def victim() -> Iterator[RawServer]:
    """A service in the server's own network."""
    with raw_server.start() as server:
        yield server


@pytest.fixture(params=BASES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, hostile: RawServer) -> Storage:
    return opened(kind, hostile)


def opened(kind: str, hostile: RawServer) -> Storage:
    whole, url = config.current(), hostile.url
    answer_token(hostile)
    settings = whole.storage.model_copy(
        update={
            "retries": 0,
            "request_timeout_s": 0.5,
            "token_timeout_s": 0.5,
            "look_timeout_s": 1.0,
            "azure": config.AzureConfig(blob_endpoint=f"{url}/{{account}}"),
            "gcs": config.GcsConfig(endpoint=url, token_endpoint=f"{url}/token", exchange_endpoint=f"{url}/exchange"),
        }
    )
    fields: dict[str, dict[str, Any]] = {
        "s3": {"bucket": "lake", "region": "r", "endpoint": url, "flavor": "s3-compat", "sts-enabled": True},
        "adls": {"account-name": "lakehouse", "filesystem": "data"},
        "gcs": {"bucket": "lake"},
    }
    keys = {"s3": ACCESS_KEY, "adls": {"credential-type": "shared-access-key", "key": KEY}, "gcs": service_account()}
    profile = parse_profile({"type": kind, "key-prefix": "wh", **fields[kind]})
    with patch.object(config, "current", lambda: whole.model_copy(update={"storage": settings})):
        found = profile.open(profile.parse_credential(keys[kind]))
        if kind == "gcs":  # it has a good token, and then the store turns bad
            found.is_empty(f"{BASES[kind]}/t")
        return found


def answer_token(hostile: RawServer) -> None:
    def answer(connection: Connection) -> None:
        connection.answer('{"access_token": "a-token", "expires_in": 3600, "items": []}')

    hostile.answer = answer


def uses(store: Storage, kind: str) -> dict[str, Callable[[], object]]:
    base = BASES[kind]
    found: dict[str, Callable[[], object]] = {
        "read": lambda: store.read(f"{base}/f", limit=1000),
        "write": lambda: store.write_new(f"{base}/f", b"content"),
        "delete": lambda: store.delete(f"{base}/f"),
        "list": lambda: store.is_empty(f"{base}/t"),
        "there": store.ensure_there,
        "survey": lambda: list(store.survey(f"{base}/t", within=base)),
    }
    if kind == "s3":
        routes = ClientRoutes("http://catalog", "v1/credentials", "v1/sign")
        asked = AccessRequest(f"{base}/t", AccessLevel.READ, frozenset(), routes)
        found["vend"] = lambda: store.client_access(asked)
    return found


def fails(use: Callable[[], object]) -> str:
    """The message; in time, and without a secret."""
    started = time.monotonic()
    with pytest.raises(StorageError) as raised:
        use()
    assert time.monotonic() - started < PATIENCE_S
    message = str(raised.value)
    assert KEY not in message
    assert "a-token" not in message
    assert "AWS4" not in message
    assert raised.value.__cause__ is None
    return message


def test_headers_in_drops_end_at_the_time_out(hostile: RawServer, store: Storage, kind: str) -> None:
    def drip(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\n", *repeat(b"X-Drop: 1\r\n", 400), pause_s=0.05)

    hostile.answer = drip
    for use in uses(store, kind).values():
        fails(use)


def test_a_body_in_drops_ends_at_the_time_out(hostile: RawServer, store: Storage, kind: str) -> None:
    def drip(connection: Connection) -> None:
        head = b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: "e"\r\n\r\n'
        connection.send(head, *repeat(b"<", 400), pause_s=0.05)

    hostile.answer = drip
    for name, use in uses(store, kind).items():
        if name not in {"write", "delete"}:  # of which nothing but the status is of interest
            fails(use)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_nobody_is_led_to_another_host(
    hostile: RawServer, victim: RawServer, store: Storage, kind: str, status: str
) -> None:
    """Reading what another host says, or sending it our credentials, is not the choice of who owns the store."""
    hostile.answer = lambda connection: connection.answer(status=status, Location=f"{victim.url}/inside")
    for name, use in uses(store, kind).items():
        fails(use)
        assert victim.asked == [], name


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "500 Internal Error"])
def test_an_endless_body_is_not_read(hostile: RawServer, store: Storage, kind: str, status: str) -> None:
    sent = []

    def flood(connection: Connection) -> None:
        connection.send(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode())
        for _ in range(1024):
            connection.send(b" " * 2**20)
            sent.append(2**20)

    hostile.answer = flood
    for name, use in uses(store, kind).items():
        if name not in {"write", "delete"} or not status.startswith("200"):
            fails(use)
            assert sum(sent) < 40 * 2**20, name
            sent.clear()


PAGES = {
    "s3": "<ListBucketResult><Name>lake</Name><IsTruncated>true</IsTruncated>"
    "<NextContinuationToken>{number}</NextContinuationToken></ListBucketResult>",
    "adls": "<EnumerationResults><Blobs></Blobs><NextMarker>{number}</NextMarker></EnumerationResults>",
    "gcs": '{{"items": [], "nextPageToken": "{number}"}}',
}


def test_a_list_without_end_ends(hostile: RawServer, store: Storage, kind: str) -> None:
    numbers = count()
    hostile.answer = lambda connection: connection.answer(PAGES[kind].format(number=next(numbers)))
    for name in ("list", "there"):
        assert re.search("did not answer in time|EndlessList", fails(uses(store, kind)[name]))
    before = len(hostile.asked)
    with pytest.raises(StorageError, match="EndlessList"):
        uses(store, kind)["survey"]()
    # a list that was given up before may ask for some more pages meanwhile
    assert 1001 <= len(hostile.asked) - before <= 1010


ENTITIES = "<!DOCTYPE x [<!ENTITY a '{}'>{}]>".format(
    "x" * 1000, "".join(f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(8))
)
BOMBS = {
    "entities": f"<?xml version='1.0'?>{ENTITIES}<ListBucketResult><Name>&i;</Name></ListBucketResult>".encode(),
    "another encoding": f"<?xml version='1.0' encoding='utf-16'?>{ENTITIES}<a>&i;</a>".encode("utf-16"),
    "elements": b"<a/>" * 600_000,
    "depth": b"[" * 2_000_000,
    "not one": b"<html>hello",
    "empty": b"",
    "lacks": b"<ListBucketResult><Contents><Size>x</Size></Contents></ListBucketResult>",
    "lacks members": b'{"items": [{"size": "x"}]}',
    "not an object": b"[7]",
}


@pytest.mark.parametrize("bomb", ["entities", "another encoding", "elements", "depth", "not one"])
def test_an_answer_that_would_grow_is_refused(hostile: RawServer, store: Storage, kind: str, bomb: str) -> None:
    hostile.answer = lambda connection: connection.answer(BOMBS[bomb])
    for name in {"list", "there", "survey", "vend"} & uses(store, kind).keys():
        fails(uses(store, kind)[name])


@pytest.mark.parametrize("bomb", ["lacks", "lacks members", "not an object", "empty"])
def test_an_answer_that_lacks_something_is_an_error_of_the_store(hostile: RawServer, bomb: str) -> None:
    stores = {kind: opened(kind, hostile) for kind in BASES}
    hostile.answer = lambda connection: connection.answer(BOMBS[bomb])
    for kind, store in stores.items():
        try:
            uses(store, kind)["list"]()
        except StorageError:
            continue
        assert bomb in {"lacks", "empty"}, (kind, "only what has no entry may count as empty")
