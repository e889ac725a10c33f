"""Content that a caller may not read costs the server little, and content that a caller may write has a limit.

`huge` stands for content from an earlier release without limits.
"""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg._cursor_base import BaseCursor

from catalog.models import Namespace, Tabular
from catalog.services.commit_writer import chains
from lakewarden import asgi, config, memory
from lakewarden.authz.decision_cache import HELD_PRIVILEGES
from lakewarden.ids import new_id
from lakewarden.names import match_key
from lakewarden.storage.local import LocalStorage
from tests.integration.catalog.lake import Lake, set_properties
from tests.servers.asgi_client import Answer

Limited = Callable[..., None]

NARROW = 16 * 1024
"""Bytes: more than any query before the decision needs."""


class Fetched:
    """The largest result of any query since the last look, in bytes."""

    def __init__(self) -> None:
        self.most = 0

    def take(self) -> int:
        found, self.most = self.most, 0
        return found


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Fetched:
    found = Fetched()
    set_results = BaseCursor._set_results

    def counting(self: BaseCursor[Any, Any], results: list[psycopg.pq.abc.PGresult]) -> None:
        for each in results:
            cells = ((row, column) for row in range(each.ntuples) for column in range(each.nfields))
            found.most = max(found.most, sum(len(each.get_value(*cell) or b"") for cell in cells))
        set_results(self, results)

    monkeypatch.setattr(BaseCursor, "_set_results", counting)
    return found


@pytest.fixture
def huge(lake: Lake) -> str:
    """The id of the namespace `sales`, whose properties hold 2 MB, and in which there are 3,000 tables."""
    namespace = Namespace.objects.get(path=["sales"])
    for number in range(40):
        namespace.properties[f"key-{number}"] = "x" * 50_000
    namespace.save()
    _add_tables(namespace, 3_000)
    return str(namespace.id)


def _add_tables(namespace: Namespace, count: int) -> None:
    rows = [
        Tabular(
            id=(identifier := new_id()),
            warehouse_id=namespace.warehouse_id,
            namespace=namespace,
            kind="table",
            name=f"table-{number:06}",
            name_key=match_key(f"table-{number:06}"),
            uuid=identifier,
            location=f"{namespace.properties['location']}/{identifier}",
            metadata_location=f"{namespace.properties['location']}/{identifier}/metadata/0.json",
        )
        for number in range(count)
    ]
    Tabular.objects.bulk_create(rows)


def _calls(lake: Lake, namespace: str) -> Iterator[tuple[str, str, Any]]:
    """Every route that looks up the namespace `sales` or an object in it: method, path, body."""
    management = f"/management/v1/warehouse/{lake.warehouse_id}"
    for path in (
        lake.namespace("sales"),
        lake.namespace("sales", "tables"),
        lake.namespace("sales", "views"),
        lake.path("namespaces", parent="sales"),
        lake.table("table-000001"),
        f"/management/v1/warehouse/{lake.warehouse_id}/namespace/{namespace}/protection",
        f"{management}/namespace/{namespace}/actions",
    ):
        yield "GET", path, None
    yield "HEAD", lake.namespace("sales"), None
    yield "HEAD", lake.table("table-000001"), None
    yield "DELETE", lake.namespace("sales"), None
    yield "POST", lake.namespace("sales", "properties"), {"updates": {"a": "b"}}
    yield "POST", lake.namespace("sales", "tables"), {"name": "t", "schema": {"type": "struct", "fields": []}}
    yield "POST", f"{management}/search-tabular", {"search": "table"}
    table = str(Tabular.objects.filter(namespace_id=UUID(namespace)).values_list("uuid", flat=True)[0])
    yield "GET", f"{management}/table/{table}/protection", None
    asked = [
        {"operation": {"namespace": {"warehouse-id": lake.warehouse_id, "namespace-id": namespace, "action": "delete"}}}
    ]
    yield "POST", "/management/v1/action/batch-check", {"checks": asked}


def test_nothing_large_is_fetched_for_somebody_without_a_right(lake: Lake, huge: str, fetched: Fetched) -> None:
    """Rights: none; only a token."""
    stranger = lake.as_user("stranger")
    for method, path, body in _calls(lake, huge):
        for _ in range(2):  # the second time the hot routes have cached the decision
            fetched.take()
            answer = stranger.client.call(method, path, json=body)
            assert fetched.take() < NARROW, (method, path)
            assert answer.status in {200, 403, 404}, (method, path)
            assert len(answer.body) < NARROW, (method, path)


def test_nothing_large_is_fetched_for_a_reader_of_one_table_beside_it(
    lake: Lake, reader: Lake, huge: str, fetched: Fetched
) -> None:
    """Rights: select on `sales.orders`."""
    fetched.take()
    for call in (reader.client.get, reader.client.head):
        for _ in range(2):
            assert call(reader.table("orders")).status in {200, 204}
            assert call(reader.table("table-000001")).status == 404
    assert fetched.take() < NARROW


def test_a_head_never_fetches_the_content(lake: Lake, huge: str, fetched: Fetched) -> None:
    """Rights: everything in the warehouse."""
    lake.client.head(lake.namespace("sales"))
    fetched.take()
    for _ in range(2):
        assert lake.client.head(lake.namespace("sales")).status == 204
    assert fetched.take() < NARROW


def test_large_properties_are_answered_by_a_thread_and_not_by_the_loop(
    lake: Lake, huge: str, hot_rows: Callable[[], int]
) -> None:
    """Rights: everything in the warehouse."""
    for _ in range(2):
        answer = lake.client.get(lake.namespace("sales"))
        assert answer.status == 200
        assert len(answer.json()["properties"]) == 41
    assert hot_rows() < NARROW


@pytest.fixture
def hot_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Measures the largest row that the event loop has fetched."""
    from lakewarden.hot import coalescer  # noqa: PLC0415 needs settings
    from lakewarden.hot.sessions import Row  # noqa: PLC0415 as above

    most = 0
    query = coalescer.Coalescer._query

    async def watching(self: coalescer.Coalescer, columns: list[list[object]]) -> list[Row]:
        nonlocal most
        rows = await query(self, columns)
        most = max(most, *(len(str(row)) for row in rows), 0)
        return rows

    monkeypatch.setattr(coalescer.Coalescer, "_query", watching)
    return lambda: most


def test_a_list_is_fetched_anew_under_each_epoch_and_still_in_one_query(lake: Lake, huge: str) -> None:
    """Rights: everything in the warehouse. Answers stay complete while cached decisions are removed and added again."""
    for _ in range(3):
        names = [each["name"] for each in lake.client.get(lake.namespace("sales", "tables")).json()["identifiers"]]
        assert len(names) == 3_000
        HELD_PRIVILEGES.clear()


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Limited]:
    """`limited(max_properties=100)` sets limits of the catalog."""

    def limit(**values: int) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"LAKEWARDEN__CATALOG__{name.upper()}", str(value))
        config.current.cache_clear()

    yield limit
    monkeypatch.undo()
    config.current.cache_clear()


def _refused(answer: Answer, setting: str, *words: str) -> None:
    assert answer.error() == (400, "IllegalArgumentException")
    assert f"catalog.{setting}" in answer.message()
    assert all(word in answer.message() for word in words), answer.message()


NAMESPACE_EXCESSES = [
    ({f"k{number}": "" for number in range(1001)}, "max_namespace_properties", ("1001",)),
    ({f"k{number}": "x" * 50_000 for number in range(3)}, "max_namespace_properties_bytes", ("131072",)),
    ({"k" * 1025: "v"}, "max_property_key_bytes", ("1025", "1024")),
    ({"k": "ü" * 131_073}, "max_property_value_bytes", ("262146", "262144")),
]


@pytest.mark.parametrize(("properties", "setting", "words"), NAMESPACE_EXCESSES)
def test_properties_of_a_namespace_have_a_limit(
    outsider: Lake, properties: dict[str, str], setting: str, words: tuple[str, ...]
) -> None:
    """Rights: create on `outside`, and everything in what they make there."""
    created = outsider.create_namespace("outside", "mine", properties=properties)
    _refused(created, setting, *words)
    assert outsider.create_namespace("outside", "mine").status == 200
    updates = {"updates": properties}
    _refused(outsider.client.post(outsider.namespace(("outside", "mine"), "properties"), updates), setting)
    assert set(outsider.client.get(outsider.namespace(("outside", "mine"))).json()["properties"]) == {"location"}


def test_many_small_requests_do_not_grow_properties_beyond_the_limit(outsider: Lake, limited: Limited) -> None:
    """Rights: create on `outside`, and everything in what they make there."""
    limited(max_namespace_properties_bytes=8192)
    assert outsider.create_namespace("outside", "mine").status == 200
    url = outsider.namespace(("outside", "mine"), "properties")
    answers = [outsider.client.post(url, {"updates": {f"k{number}": "x" * 1000}}) for number in range(12)]
    accepted = sum(answer.status == 200 for answer in answers)
    assert [answer.status for answer in answers] == [200] * accepted + [400] * (12 - accepted)
    assert accepted in {7, 8}
    _refused(answers[-1], "max_namespace_properties_bytes", "8192")


def test_properties_above_the_limit_can_still_be_made_smaller(lake: Lake, huge: str) -> None:
    """Rights: modify; an earlier release stored 2 MB."""
    url = lake.namespace("sales", "properties")
    assert lake.client.post(url, {"updates": {"key-0": "short"}}).status == 200
    assert lake.client.post(url, {"removals": ["key-1", "key-2"]}).status == 200
    _refused(lake.client.post(url, {"updates": {"another": "v"}}), "max_namespace_properties_bytes")
    assert lake.client.post(url, {"removals": [f"key-{number}" for number in range(3, 40)]}).status == 200
    assert lake.client.post(url, {"updates": {"another": "v"}}).status == 200


@pytest.mark.parametrize(
    ("properties", "setting"),
    [
        ({f"k{number}": "" for number in range(10_001)}, "max_properties"),
        ({f"k{number}": "x" * 250_000 for number in range(5)}, "max_properties_bytes"),
        ({"k" * 1025: "v"}, "max_property_key_bytes"),
        ({"k": "x" * 262_145}, "max_property_value_bytes"),
    ],
)
def test_properties_of_tables_and_views_have_a_limit(lake: Lake, properties: dict[str, str], setting: str) -> None:
    """Rights: create and modify."""
    _refused(lake.create_table("orders", properties=properties), setting)
    _refused(lake.create_view("shown", properties=properties), setting)
    assert lake.create_table("orders").status == 200
    assert lake.create_view("shown").status == 200
    change = set_properties(**properties)
    _refused(lake.commit("orders", change), setting)
    _refused(lake.client.post(lake.view("shown"), {"updates": [change]}), setting)
    assert lake.load("orders")["metadata"]["properties"].keys().isdisjoint(properties)
    created = {"requirements": [{"type": "assert-create"}], "updates": [*_staged(lake, "staged"), change]}
    _refused(lake.client.post(lake.table("staged"), created), setting)


def _staged(lake: Lake, name: str) -> list[dict[str, Any]]:
    metadata = lake.create_table(name, stage_create=True).json()["metadata"]
    return [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]


def _padded(number: int) -> dict[str, Any]:
    field = {"id": number + 10, "name": f"column{number}", "type": "string", "required": False, "doc": "x" * 30_000}
    return {"action": "add-schema", "schema": {"type": "struct", "schema-id": number, "fields": [field]}}


def test_small_commits_do_not_grow_metadata_beyond_the_limit(
    lake: Lake, limited: Limited, base: Path, fetched: Fetched
) -> None:
    """Rights: create and modify. Above the limit, removing is allowed and adding is not."""
    limited(max_metadata_bytes=100_000)
    assert lake.create_table("orders").status == 200
    answers = [lake.commit("orders", _padded(number)) for number in range(1, 5)]
    assert [answer.status for answer in answers] == [200, 200, 200, 400]
    _refused(answers[-1], "max_metadata_bytes", "100000")
    files = list(base.rglob("*.metadata.json"))
    assert len(files) == 4, "a refused commit leaves no file"
    last = lake.load("orders")

    limited(max_metadata_bytes=65_536)
    _refused(lake.commit("orders", set_properties(a="b")), "max_metadata_bytes", "65536")
    assert lake.commit("orders", {"action": "remove-schemas", "schema-ids": [1]}).status == 200
    assert lake.commit("orders", {"action": "remove-schemas", "schema-ids": [2]}).status == 200
    assert lake.commit("orders", set_properties(a="b")).status == 200

    file = base / "t" / "metadata" / "v1.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(last["metadata"]))
    answer = lake.client.post(
        lake.namespace("sales", "register"), {"name": "again", "metadata-location": f"file://{file}"}
    )
    assert answer.error() == (400, "ValidationException")
    assert "65536" in answer.message()


def test_a_file_that_unpacks_to_too_much_is_not_registered(lake: Lake, base: Path, limited: Limited) -> None:
    """Rights: create, and a place in the storage where they may write a file."""
    limited(max_metadata_bytes=65_536)
    file = base / "t" / "metadata" / "v1.gz.metadata.json"
    file.parent.mkdir(parents=True)
    for content in (gzip.compress(b" " * 100_000), gzip.compress(b" " * 100_000)[:-4] + b"\x10\x00\x00\x00"):
        file.write_bytes(content)
        body = {"name": "again", "metadata-location": f"file://{file}"}
        assert lake.client.post(lake.namespace("sales", "register"), body).error() == (400, "ValidationException")


def test_a_list_that_is_too_long_is_read_in_pages(lake: Lake, huge: str, limited: Limited) -> None:
    """Rights: everything in the warehouse."""
    limited(max_list_entries=2999)
    for url in (lake.namespace("sales", "tables"), lake.namespace("sales", "tables", returnUuids="true")):
        for _ in range(2):
            answer = lake.client.get(url)
            assert answer.error() == (400, "BadRequestException")
            assert "catalog.max_list_entries" in answer.message()
            assert "pageToken" in answer.message()
    found = 0
    token: str | None = ""
    while token is not None:
        page = lake.client.get(lake.namespace("sales", "tables", pageToken=token)).json()
        found, token = found + len(page["identifiers"]), page["next-page-token"]
    assert found == 3_000
    limited(max_list_entries=3000)
    assert len(lake.client.get(lake.namespace("sales", "tables")).json()["identifiers"]) == 3_000


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> memory.Budget:
    """Sets the memory that large requests may use together to 8 MiB."""
    budget = memory.Budget(8 * 1024 * 1024)
    for module in (memory, chains):
        monkeypatch.setattr(module, "working", lambda: budget)
    monkeypatch.setattr(memory, "PATIENCE_S", 0.2)
    return budget


def test_large_documents_at_once_are_bounded_by_their_memory(lake: Lake, room: memory.Budget) -> None:
    """Rights: create and modify. Too much at once is 503 and changes nothing."""
    assert lake.create_table("orders").status == 200
    assert [lake.commit("orders", _padded(number)).status for number in range(1, 30)] == [200] * 29
    before = lake.load("orders")["metadata-location"]
    assert room.used == 0, "what a request held is given back with its end"
    taken = 7 * 1024 * 1024
    assert room.try_take(taken)
    tiny = set_properties(a="b")
    for answer in (
        lake.commit("orders", tiny),
        lake.client.get(lake.table("orders", snapshots="refs")),
        lake.client.get(lake.table("orders")),
    ):
        assert answer.error() == (503, "ServiceUnavailableException")
        assert answer.headers["retry-after"]
    assert lake.create_table("small").status == 200
    room.give_back(taken)
    assert lake.load("orders")["metadata-location"] == before
    assert lake.commit("orders", tiny).status == 200
    assert room.used == 0


def test_large_requests_of_one_caller_leave_room_for_those_of_others(
    lake: Lake, outsider: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: create on `outside`. A single document at its limit would use all the memory for large requests."""
    monkeypatch.setattr(
        asgi, "HOT_ROUTES", []
    )  # for such a small document only the path through Django reserves memory
    for owner, name, within in ((lake, "theirs", "sales"), (outsider, "mine", "outside")):
        assert owner.create_table(name, within=within).status == 200
        assert owner.commit(name, set_properties(padding="x" * 100_000), within=within).status == 200
    room = memory.Budget(8 * 1024 * 1024, percent=75)
    monkeypatch.setattr(memory, "working", lambda: room)
    monkeypatch.setattr(memory, "PATIENCE_S", 0.2)
    room.take(64 * 1024 * 1024, "oidc~outsider")
    refused = outsider.commit("mine", set_properties(a="b"), within="outside")
    assert refused.error() == (503, "ServiceUnavailableException")
    assert lake.commit("theirs", set_properties(a="b")).status == 200
    room.give_back(64 * 1024 * 1024, "oidc~outsider")
    assert outsider.commit("mine", set_properties(a="b"), within="outside").status == 200
    assert room.used == 0


def test_a_large_body_where_a_small_one_belongs_is_not_decoded(lake: Lake) -> None:
    """Rights: none; only a token."""
    stranger = lake.as_user("stranger")
    body = gzip.compress(b'{"namespace": ["' + b'a", "' * 3_000_000 + b'"]}')
    calls = [lake.path("namespaces"), lake.namespace("sales", "properties"), lake.path("tables", "rename")]
    for path in (*calls, "/management/v1/action/batch-check", "/management/v1/project"):
        answer = stranger.client.post(path, body=body, headers={"content-encoding": "gzip"})
        assert answer.error() == (413, "PayloadTooLargeException"), path


class Hung:
    """A file system that hangs until it is released."""

    def __init__(self) -> None:
        self.gone_on = threading.Event()
        self.inside = 0

    def wait(self) -> None:
        self.inside += 1
        assert self.gone_on.wait(60)


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hung]:
    """Becomes the storage of all warehouses."""
    found = Hung()
    stat, write = LocalStorage.is_known_missing, LocalStorage.write_new

    def is_known_missing(self: LocalStorage, location: str) -> bool:
        found.wait()
        return stat(self, location)

    def write_new(self: LocalStorage, location: str, content: bytes) -> None:
        found.wait()
        write(self, location, content)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "is_known_missing", is_known_missing)
        patched.setattr(LocalStorage, "write_new", write_new)
        yield found
        found.gone_on.set()


def test_a_hung_storage_does_not_stop_the_loop(lake: Lake, request: pytest.FixtureRequest, base: Path) -> None:
    """Rights: none are needed, because a mounted file system hangs."""
    assert lake.create_table("orders").status == 200
    lake.load("orders")
    hung: Hung = request.getfixturevalue("hung")
    started = time.monotonic()
    gzipped = {"accept-encoding": "gzip"}
    for _ in range(20):
        assert lake.client.get(lake.table("orders"), headers=gzipped).status == 200
        assert lake.client.head(lake.table("orders")).status == 204
    assert time.monotonic() - started < 5
    assert hung.inside == 1, "only one thread waits for the storage"

    hung.gone_on.set()
    for file in base.rglob("*.metadata.json"):
        file.unlink()
    deadline = time.monotonic() + 60
    while (answer := lake.client.get(lake.table("orders"), headers=gzipped)).status == 200:
        assert time.monotonic() < deadline
    assert answer.error() == (404, "NotFoundException")


def test_a_hung_storage_leaves_threads_for_others(lake: Lake, hung: Hung) -> None:
    """Rights: create. The attacker's storage hangs; at most 8 calls wait for it, and the rest of the server works."""
    with ThreadPoolExecutor(12) as pool:
        first = [pool.submit(lake.create_table, f"t{number}") for number in range(8)]
        deadline = time.monotonic() + 60
        while hung.inside < 8:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        further = [pool.submit(lake.create_table, f"u{number}").result(30) for number in range(6)]
        assert [answer.error() for answer in further] == [(503, "ServiceUnavailableException")] * 6
        assert all(answer.headers["retry-after"] for answer in further)
        assert hung.inside == 8
        assert lake.create_namespace("elsewhere").status == 200
        assert not any(each.done() for each in first)
        hung.gone_on.set()
        assert [each.result(30).status for each in first] == [200] * 8
