"""The hot reads answer as Django does, with one query, and never from an older state."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from catalog.api.hot import tabulars
from catalog.documents import Document, loaded
from lakewarden import asgi
from lakewarden.authz.decision_cache import HELD_PRIVILEGES
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.hot.shared_builds import SharedBuilds
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import Grant
from tests.integration.catalog.counted import Counted, queries
from tests.integration.catalog.lake import Lake, set_properties
from tests.servers.asgi_client import Answer

__all__ = ["queries"]

GZIP = {"accept-encoding": "gzip"}


@pytest.fixture
def without_hot_routes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    yield
    connections.close_all()


def _same(first: Answer, second: Answer) -> None:
    assert (first.status, first.body) == (second.status, second.body)
    assert {name: value for name, value in first.headers.items() if name != "x-request-id"} == {
        name: value for name, value in second.headers.items() if name != "x-request-id"
    }


def test_a_warm_load_asks_one_query_and_a_warm_head_too(lake: Lake, queries: Counted) -> None:
    lake.create_table("orders")
    lake.client.get(lake.table("orders"), headers=GZIP)
    queries.take()

    assert lake.client.get(lake.table("orders"), headers=GZIP).status == 200
    assert queries.take() == (1, 0)
    assert lake.client.head(lake.table("orders")).status == 204
    assert queries.take() == (1, 0)
    assert lake.client.get(lake.table("orders", snapshots="all"), headers=GZIP).status == 200
    assert queries.take() == (1, 0)


def test_a_warm_config_asks_one_query(lake: Lake, queries: Counted) -> None:
    first = lake.client.get("/catalog/v1/config?warehouse=lake")
    queries.take()

    second = lake.client.get("/catalog/v1/config?warehouse=LAKE")

    assert queries.take() == (1, 0)
    assert second.json() == first.json()


def test_hot_answers_are_those_of_django(lake: Lake, monkeypatch: pytest.MonkeyPatch, queries: Counted) -> None:
    lake.create_table("Orders 1+1")
    urls = [lake.table("orders 1+1"), lake.table("ORDERS 1+1", within="SALES")]
    for url in urls:
        lake.client.get(url, headers=GZIP)
    tag = lake.client.get(urls[0], headers=GZIP).headers["etag"]
    calls = [(url, GZIP) for url in urls] + [(urls[0], {**GZIP, "if-none-match": f'"x", {tag}'})]
    queries.take()
    hot = [lake.client.get(url, headers=headers) for url, headers in calls]
    assert queries.take() == (3, 0)

    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    cold = [lake.client.get(url, headers=headers) for url, headers in calls]

    for first, second in zip(hot, cold, strict=True):
        _same(first, second)
    assert [answer.status for answer in hot] == [200, 200, 304]


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
def test_hot_lists_are_those_of_django(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, queries: Counted, coding: str
) -> None:
    lake.create_view("no-table")
    for number in range(30):
        lake.create_table(f"T {number:02} ünï")
    url, headers = lake.namespace("SALES", "tables"), {"accept-encoding": coding}
    token = lake.client.get(f"{url}?pageSize=7&pageToken=").json()["next-page-token"]
    calls = [url, f"{url}?pageToken=", f"{url}?pageSize=7", f"{url}?pageToken={token}&pageSize=7", f"{url}?pageSize=30"]
    queries.take()
    hot = [lake.client.get(each, headers=headers) for each in 2 * calls]  # built, and kept
    assert queries.take() == (10, 0)

    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    cold = 2 * [lake.client.get(each, headers=headers) for each in calls]

    for first, second in zip(hot, cold, strict=True):
        _same(first, second)


def test_a_list_that_was_kept_is_the_answer_for_the_same_names_only(lake: Lake, queries: Counted) -> None:
    url = lake.namespace("SALES", "tables")

    def listed(coding: str) -> list[str]:
        answer = lake.client.get(url, headers={"accept-encoding": coding, "x-request-id": f"in-{coding}"})
        assert answer.headers["x-request-id"] == f"in-{coding}"
        return [each["name"] for each in answer.json()["identifiers"]]

    expected: list[str] = []
    assert listed("gzip") == []
    for change in ("a", "b", "c"):
        lake.create_table(change)
        expected.append(change)
        queries.take()
        assert [listed(coding) for coding in ("gzip", "identity", "gzip")] == [expected] * 3
        assert queries.take() == (3, 0)
    assert lake.client.delete(lake.table("b")).status == 204
    lake.create_table("D")
    assert [listed(coding) for coding in ("gzip", "identity", "gzip")] == [["a", "c", "D"]] * 3


def test_hot_namespaces_and_views_are_those_of_django(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, queries: Counted
) -> None:
    for number in range(5):
        lake.create_namespace(f"N {number}", properties={"ü": "x" * 300 * number})
    lake.create_view("Late")
    token = lake.client.get(lake.path("namespaces", pageSize="2")).json()["next-page-token"]
    calls = [
        lake.path("namespaces"),
        lake.path("namespaces", pageSize="2"),
        lake.path("namespaces", pageSize="2", pageToken=token),
        *(lake.namespace(f"n {number}") for number in range(5)),
        lake.view("LATE"),
    ]
    for each in calls:
        lake.client.get(each, headers=GZIP)
    queries.take()
    hot = [lake.client.get(each, headers=GZIP) for each in calls]
    assert queries.take() == (len(calls), 0)
    assert [lake.client.head(each).status for each in (lake.namespace("sales"), lake.view("late"))] == [204, 204]
    assert lake.client.get(lake.table("late"), headers=GZIP).error() == (404, "NoSuchTableException")

    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    cold = [lake.client.get(each, headers=GZIP) for each in calls]

    for first, second in zip(hot, cold, strict=True):
        _same(first, second)


def test_a_hot_list_of_an_empty_namespace_is_empty(lake: Lake, queries: Counted) -> None:
    lake.client.get(lake.namespace("sales", "tables"))
    queries.take()

    assert lake.client.get(lake.namespace("sales", "tables")).json() == {"identifiers": [], "next-page-token": None}
    assert queries.take() == (1, 0)


def test_a_commit_is_seen_by_the_next_load(lake: Lake) -> None:
    lake.create_table("orders")
    for number in range(20):
        lake.client.get(lake.table("orders"), headers=GZIP)
        assert lake.commit("orders", set_properties(number=str(number))).status == 200
        assert lake.load("orders")["metadata"]["properties"]["number"] == str(number)


def test_a_revoked_right_is_gone_with_the_next_request(lake: Lake, grant: Grant) -> None:
    grant("reader", "select")
    reader = lake.as_user("reader")
    lake.create_table("orders")
    for _ in range(3):
        assert reader.client.get(lake.table("orders"), headers=GZIP).status == 200

    GrantRow.objects.filter(principal_id="oidc~reader").delete()
    projects.bump_epoch(DEFAULT_PROJECT_ID)

    assert reader.client.get(lake.table("orders"), headers=GZIP).error() == (404, "NoSuchTableException")
    assert reader.client.head(lake.table("orders")).status == 404
    assert reader.client.get("/catalog/v1/config?warehouse=lake").error() == (404, "NoSuchWarehouseException")


def test_a_dropped_table_is_gone_with_the_next_request(lake: Lake) -> None:
    lake.create_table("orders")
    lake.client.get(lake.table("orders"), headers=GZIP)

    assert lake.client.delete(lake.table("orders")).status == 204

    assert lake.client.get(lake.table("orders"), headers=GZIP).status == 404
    assert lake.client.head(lake.table("orders")).status == 404


def test_a_table_that_takes_a_dropped_ones_name_is_another(lake: Lake) -> None:
    lake.create_table("orders")
    first = lake.client.get(lake.table("orders"), headers=GZIP).headers["etag"]
    lake.client.delete(lake.table("orders"))
    lake.create_table("orders")

    answer = lake.client.get(lake.table("orders"), headers={**GZIP, "if-none-match": first})

    assert answer.status == 200
    assert answer.headers["etag"] != first


@pytest.mark.parametrize("name", ["", "%00", "a%1Fb", "%ff", "%F0%9F%A6%86"])
def test_odd_names_are_missing_not_errors(lake: Lake, name: str) -> None:
    path = f"/catalog/v1/{lake.warehouse_id}/namespaces/sales/tables/{name}"

    assert lake.client.get(path, headers=GZIP).status in {400, 404}


def test_concurrent_loads_share_queries(lake: Lake, queries: Counted) -> None:
    lake.create_table("orders")
    lake.client.get(lake.table("orders"), headers=GZIP)
    queries.take()
    start = threading.Barrier(16)

    def load(_: int) -> int:
        start.wait(10)
        return lake.client.get(lake.table("orders"), headers=GZIP).status

    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(load, range(16)))

    assert statuses == [200] * 16
    shared, django = queries.take()
    assert django == 0
    assert shared <= 16


def test_concurrent_loads_of_a_large_table_build_its_answer_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create_table("orders")
    filler = {f"key-{number}": "x" * 250_000 for number in range(4)}
    assert lake.commit("orders", set_properties(**filler)).status == 200
    expected = lake.client.get(lake.table("orders")).body
    built, share = 0, SharedBuilds.share
    asked, may_end = threading.Semaphore(0), threading.Event()

    def slow(document: Document, suffix: bytes) -> bytes:
        nonlocal built
        built += 1
        assert may_end.wait(20)
        return loaded(document, suffix)

    def noted(self: SharedBuilds[bytes], key: Any, build: Any) -> Any:
        asked.release()
        return share(self, key, build)

    monkeypatch.setattr(tabulars, "loaded", slow)
    monkeypatch.setattr(SharedBuilds, "share", noted)
    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(lake.client.get, lake.table("orders")) for _ in range(8)]
        assert all(asked.acquire(timeout=20) for _ in asking)
        may_end.set()
        assert [each.result(20).body == expected for each in asking] == [True] * 8
    assert built == 1


def test_without_the_decision_known_django_decides(lake: Lake, queries: Counted) -> None:
    lake.create_table("orders")
    lake.client.get(lake.table("orders"), headers=GZIP)
    HELD_PRIVILEGES.clear()
    queries.take()

    assert lake.client.get(lake.table("orders"), headers=GZIP).status == 200

    shared, django = queries.take()
    assert shared == 1
    assert django > 0


def test_statements_of_the_routes_through_django(lake: Lake, queries: Counted) -> None:
    """A commit: look-up, document, BEGIN, pointer, records, COMMIT; the driver sends BEGIN and COMMIT uncounted."""
    lake.create_table("orders")
    lake.load("orders")
    calls: dict[str, tuple[Callable[[], Answer], int]] = {
        "list": (lambda: lake.client.get(lake.namespace("sales", "tables")), 2),
        "load identity": (lambda: lake.client.get(lake.table("orders")), 1),
        "commit": (lambda: lake.commit("orders", set_properties(a="1")), 4),
    }
    for name, (call, expected) in calls.items():
        call()
        queries.take()
        assert call().status == 200
        assert sum(queries.take()) <= expected, name
