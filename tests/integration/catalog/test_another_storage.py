"""A catalog on a storage that no code outside `lakewarden.storage` knows: an object store that tests register."""

from collections.abc import Iterator
from typing import Any

import pytest

from lakewarden import asgi
from lakewarden.context import RequestContext
from lakewarden.errors import AlreadyExists
from lakewarden.storage.profiles import PROFILES
from tenants.models import Warehouse
from tests.contracts.storage.bucket import OBJECTS, BucketProfile
from tests.installation import Grant
from tests.integration.catalog.bucket_warehouse import made
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.tasks.purges import run, sql
from tests.servers.asgi_client import AsgiClient

BASE = "bucket://one/lake"


@pytest.fixture
def warehouse(admin: AsgiClient, admin_context: RequestContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Instead of the one in a directory."""
    monkeypatch.setitem(PROFILES, "bucket", BucketProfile)
    yield made(admin_context, "lake")
    OBJECTS.clear()


def files(location: str) -> list[str]:
    return [each for each in OBJECTS if each.startswith(f"{location}/")]


def test_a_table_is_created_changed_and_loaded(lake: Lake) -> None:
    created = lake.create_table("orders")
    assert created.status == 200, created.body
    location = created.json()["metadata"]["location"]
    assert location.startswith(f"{BASE}/")
    assert lake.commit("orders", set_properties(color="red")).status == 200
    assert lake.load("orders")["metadata"]["properties"]["color"] == "red"
    assert len(files(location)) == 2


def test_one_bucket_by_two_endpoints_is_one_place(lake: Lake, admin_context: RequestContext) -> None:
    assert lake.create_table("orders").status == 200
    for fields in ({"endpoint": "http://two"}, {"key-prefix": ""}, {"key-prefix": "lake/inner"}):
        with pytest.raises(AlreadyExists, match="overlaps that of another warehouse"):
            made(admin_context, "other", **fields)
    assert made(admin_context, "beside", **{"key-prefix": "lake2"}).location == f"{BASE}2"


def test_one_place_has_one_owner_by_whichever_spelling(lake: Lake) -> None:
    first = lake.create_table("orders", location="bucketa://one/lake/here")
    assert first.status == 200, first.body
    for spelling in ("bucket://one/lake/here", "bucketa://one/lake/here/", "bucketa://one/lake/here/inner"):
        answer = lake.create_table("others", location=spelling)
        assert answer.error() == (409, "AlreadyExistsException"), spelling
    for outside in ("bucketa://one/lake2/t", "bucket://two/lake/t", "file:///lake/t"):
        assert lake.create_table("others", location=outside).status == 400
    assert lake.create_table("others", location="bucketa://one/lake/here2").status == 200


def test_a_path_of_data_is_inside_the_location_in_either_spelling(lake: Lake) -> None:
    assert lake.create_table("orders", location=f"{BASE}/here").status == 200
    assert lake.commit("orders", set_properties(**{"write.data.path": "bucketa://one/lake/here/data"})).status == 200
    answer = lake.commit("orders", set_properties(**{"write.data.path": "bucketa://one/lake/elsewhere"}))
    assert answer.status == 400


@pytest.mark.parametrize(("privilege", "level"), [("describe", None), ("select", "read"), ("write", "write")])
@pytest.mark.parametrize("is_hot", [True, False])
def test_a_load_tells_each_caller_as_much_as_they_may_do(
    lake: Lake, grant: Grant, monkeypatch: pytest.MonkeyPatch, *, privilege: str, level: str | None, is_hot: bool
) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    grant("alice", privilege)
    if not is_hot:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    for _ in range(3):
        told: dict[str, Any] = lake.as_user("alice").load("orders")["config"]
        expected = {"bucket.endpoint": "http://one", "bucket.token": f"{level} {location}"}
        assert told == ({} if level is None else expected)


def test_a_staged_creation_is_told_where_and_how_to_write(lake: Lake) -> None:
    answer = lake.create_table("orders", stage_create=True).json()
    assert answer["config"]["bucket.token"].endswith(answer["metadata"]["location"])


def test_views_are_not_told_how_to_reach_files(lake: Lake) -> None:
    assert lake.create_view("report").json()["config"] == {}
    assert lake.client.get(lake.view("report")).json()["config"] == {}


def test_a_purge_takes_the_files_of_one_table(lake: Lake) -> None:
    dropped = lake.create_table("orders", location=f"{BASE}/here").json()["metadata"]["location"]
    kept = lake.create_table("others", location=f"{BASE}/here2").json()["metadata"]["location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    ((task,),) = sql("select id from task where lock = %s", dropped)
    assert run(task) == 1
    assert (files(dropped), len(files(kept))) == ([], 1)
