"""Whoever holds credentials for a table cannot wait for another table at its location: they reach what is gone only."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from catalog.services import staged_creations
from catalog.services.periodic_tasks import end_staged_creations
from lakewarden.context import RequestContext
from lakewarden.errors import AlreadyExists
from lakewarden.storage.profiles import PROFILES
from tenants.models import Warehouse
from tests.contracts.storage.bucket import OBJECTS
from tests.contracts.storage.vending_bucket import Keys, VendingProfile
from tests.integration.catalog.bucket_warehouse import made
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.locations import move
from tests.integration.catalog.registering import register
from tests.integration.catalog.staged import commit_staged
from tests.integration.tasks.purges import run, sql
from tests.servers.asgi_client import Answer, AsgiClient

API = "/management/v1"
BASE = "bucket://one/lake"
HERE = f"{BASE}/here"


class LastingProfile(VendingProfile):
    LASTS: ClassVar = timedelta(hours=1)

    @property
    def access_lasts(self) -> timedelta:
        return self.LASTS


@pytest.fixture
def warehouse(admin: AsgiClient, admin_context: RequestContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Its engines receive credentials that last for an hour."""
    monkeypatch.setattr(VendingProfile, "KEYS", Keys(), raising=False)
    monkeypatch.setitem(PROFILES, "bucket", LastingProfile)
    yield made(admin_context, "lake")
    OBJECTS.clear()


def purge_all() -> None:
    for (task,) in sql("select id from task where outcome is null and queue_name = 'tabular_purge'"):
        run(task)
    sql("update procrastinate_jobs set status = 'succeeded' where queue_name = 'tabular_purge'")


def pass_time() -> None:
    """Until what was issued has ended."""
    sql("update reachable_location set until = now() - interval '1 second'")


def drop(lake: Lake, name: str = "orders", *, with_files: bool = True) -> None:
    assert lake.client.delete(lake.table(name, purgeRequested=str(with_files).lower())).status == 204
    purge_all()


@pytest.fixture
def dropped(lake: Lake) -> Lake:
    """A table was `HERE`, and its files are purged."""
    assert lake.create_table("orders", location=HERE).status == 200
    drop(lake)
    assert not OBJECTS
    return lake


def refused(answer: Answer) -> None:
    assert answer.error() == (409, "AlreadyExistsException"), answer.body
    assert "still have credentials for its files until 20" in answer.message()


Route = Callable[[Lake, str], Answer]
ROUTES: dict[str, Route] = {
    "create": lambda lake, at: lake.create_table("other", location=at),
    "stage": lambda lake, at: lake.create_table("other", location=at, stage_create=True),
    "move": lambda lake, at: lake.commit("mover", move(at)),
    "namespace": lambda lake, at: lake.create_namespace("inside", properties={"location": at}),
}


@pytest.mark.parametrize("place", [HERE, f"{HERE}/deeper", f"{BASE}/here/data/x"])
@pytest.mark.parametrize("name", ROUTES)
def test_no_route_takes_a_place_that_engines_still_reach(dropped: Lake, name: str, place: str) -> None:
    dropped.create_table("mover")
    route = ROUTES[name]
    refused(route(dropped, place))
    assert dropped.create_table("beside", location=f"{HERE}2").status == 200
    pass_time()
    assert route(dropped, place).status == 200


def test_a_table_around_such_a_place_waits_too(lake: Lake) -> None:
    assert lake.create_table("orders", location=f"{HERE}/inner").status == 200
    drop(lake)
    refused(lake.create_table("other", location=HERE))
    assert lake.create_namespace("around", properties={"location": HERE}).status == 200
    refused(lake.create_table("other", within="around", location=f"{HERE}/inner"))


def test_files_of_another_table_are_not_registered_there(dropped: Lake) -> None:
    metadata = dropped.create_table("other").json()["metadata-location"]
    place = f"{HERE}/metadata/1.json"
    OBJECTS[place] = OBJECTS[metadata]
    refused(register(dropped, "third", place))


def test_the_table_itself_may_come_back(lake: Lake) -> None:
    metadata = lake.create_table("orders", location=HERE).json()["metadata-location"]
    drop(lake, with_files=False)
    refused(lake.create_table("other", location=HERE))
    assert register(lake, "orders", metadata).status == 200
    assert sql("select count(*) from reachable_location") == [(0,)]
    drop(lake)
    refused(lake.create_table("other", location=HERE))


def test_a_move_back_to_an_earlier_place_is_allowed(lake: Lake) -> None:
    lake.create_table("orders", location=HERE)
    assert lake.commit("orders", move(f"{BASE}/there")).status == 200
    assert lake.commit("orders", move(HERE)).status == 200
    drop(lake)
    for place in (HERE, f"{BASE}/there"):
        refused(lake.create_table("other", location=place))


def test_a_staged_creation_gave_access_until_its_end(lake: Lake) -> None:
    staged = lake.create_table("orders", location=HERE, stage_create=True).json()
    sql("update reserved_location set expires_at = now() - interval '1 second' where kind = 'staged'")
    refused(lake.create_table("other", location=HERE))
    assert staged_creations.end_expired() == 1
    refused(lake.create_table("other", location=HERE))
    refused(commit_staged(lake, "orders", staged))


def test_a_staged_creation_is_committed_where_it_was_staged(lake: Lake) -> None:
    staged = lake.create_table("orders", location=HERE, stage_create=True).json()
    assert commit_staged(lake, "orders", staged).status == 200
    assert sql("select count(*) from reachable_location") == [(0,)]


def test_a_warehouse_that_is_made_there_anew_knows_of_it(
    dropped: Lake, admin: AsgiClient, admin_context: RequestContext
) -> None:
    assert dropped.client.delete(dropped.namespace("sales")).status == 204
    assert admin.delete(f"{API}/warehouse/{dropped.warehouse_id}").status == 204
    for prefix in ("lake/here", "lake/here/data"):
        with pytest.raises(AlreadyExists, match="may still have credentials for it until 20"):
            made(admin_context, "inside", **{"key-prefix": prefix})
    lake = Lake(admin, str(made(admin_context, "anew").id))
    lake.create_namespace("sales")
    refused(lake.create_table("other", location=HERE))
    pass_time()
    assert lake.create_table("other", location=HERE).status == 200


def test_a_shorter_time_does_not_shorten_what_was_issued_before(
    lake: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_table("orders", location=HERE)
    profile: dict[str, Any] = {"type": "bucket", "bucket": "one", "key-prefix": "lake", "endpoint": "http://two"}
    changed = admin.post(f"{API}/warehouse/{lake.warehouse_id}/storage", {"storage-profile": profile})
    assert changed.status == 200, changed.body
    monkeypatch.setattr(LastingProfile, "LASTS", timedelta(0))
    drop(lake)
    refused(lake.create_table("other", location=HERE))
    ((left,),) = sql("select until - now() from reachable_location")
    assert timedelta(minutes=55) < left < timedelta(minutes=63)


def test_storage_without_credentials_leaves_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LastingProfile, "LASTS", timedelta(0))
    lake.create_table("orders", location=HERE)
    drop(lake)
    assert lake.create_table("other", location=HERE).status == 200


def test_records_go_when_nothing_is_reachable_any_more(dropped: Lake) -> None:
    end_staged_creations(timestamp=0)
    assert sql("select location from reachable_location") == [(HERE,)]
    pass_time()
    end_staged_creations(timestamp=0)
    assert sql("select location from reachable_location") == []
