"""Paging of the three lists: namespaces, tables, views."""

from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.integration.catalog.lake import Lake

Arrange = Callable[[Lake], str]

NAMES = ["alpha", "Beta", "gamma", "Delta", "épsilon", "zeta 6", "η"]


def _namespaces(lake: Lake) -> str:
    for name in NAMES:
        lake.create_namespace("sales", name)
    return lake.path("namespaces", parent="sales") + "&"


def _tables(lake: Lake) -> str:
    lake.create_view("a-view")
    for name in NAMES:
        lake.create_table(name)
    return lake.namespace("sales", "tables") + "?"


def _views(lake: Lake) -> str:
    lake.create_table("a-table")
    for name in NAMES:
        lake.create_view(name)
    return lake.namespace("sales", "views") + "?"


@pytest.fixture(params=[_namespaces, _tables, _views], ids=["namespaces", "tables", "views"])
def url(request: pytest.FixtureRequest, lake: Lake) -> str:
    arrange: Arrange = request.param
    return arrange(lake)


def read(lake: Lake, url: str) -> tuple[list[str], str | None]:
    told = lake.client.get(url).json()
    found = told["namespaces"] if "namespaces" in told else [each["name"] for each in told["identifiers"]]
    return [each if isinstance(each, str) else each[-1] for each in found], told["next-page-token"]


def pages(lake: Lake, url: str, first: str, size: int) -> list[list[str]]:
    """All pages, the first one asked for by `first`, the others by their tokens."""
    found, token = read(lake, url + first)
    collected = [found]
    while token is not None:
        found, token = read(lake, f"{url}pageToken={quote(token)}&pageSize={size}")
        collected.append(found)
    return collected


def test_lists_are_complete_and_in_one_order(lake: Lake, url: str) -> None:
    everything, token = read(lake, url)
    assert sorted(everything) == sorted(NAMES)
    assert token is None
    for first in ("pageToken=&pageSize=3", "pageSize=3"):
        paged = pages(lake, url, first, 3)
        assert [len(page) for page in paged] == [3, 3, 1]
        assert [name for page in paged for name in page] == everything
    assert read(lake, url + "pageToken=") == (everything, None)
    assert read(lake, url + "pageSize=7") == (everything, None)
    for many in ("999999999", "24623931167"):
        assert read(lake, f"{url}pageSize={many}") == (everything, None)
    for bad in ("pageSize=0", "pageSize=-1", "pageSize=x", "pageSize=", "pageSize=%D9%A3"):
        assert lake.client.get(url + bad).error() == (400, "BadRequestException")
    for bad in (
        "pageToken=x",
        "pageToken=%00",
        "pageToken=MQ%3D%3D%3D",
        "pageToken=Mf8",
        "pageToken=MQA",
        "pageToken=é",
    ):
        answer = lake.client.get(url + bad)
        assert answer.error() == (400, "BadRequestException"), bad
        assert "pageToken" in answer.message()


def test_a_page_survives_changes_around_it(lake: Lake) -> None:
    url = _tables(lake)
    everything, _ = read(lake, url)
    first, token = read(lake, url + "pageSize=2")
    lake.client.delete(lake.table(first[1]))
    lake.create_table("aa")
    rest, _ = read(lake, f"{url}pageToken={token}")
    assert rest == everything[2:]
