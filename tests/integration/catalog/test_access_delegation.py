"""What loads say about the access to files: to whom, by which mechanism, for how long, and how often it is asked."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from catalog.api.tables import TableEndpoint, TablesEndpoint
from catalog.services.client_access import Addition
from catalog.services.kept_additions import KeptAdditions, Loaded
from lakewarden import asgi
from lakewarden.authz.decision_cache import Epoch
from lakewarden.context import RequestContext
from lakewarden.storage.profiles import PROFILES
from tenants.models import Warehouse
from tests.contracts.storage.bucket import OBJECTS
from tests.contracts.storage.vending_bucket import Keys, VendingProfile
from tests.installation import Grant
from tests.integration.catalog.bucket_warehouse import made
from tests.integration.catalog.counted import Counted, queries
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.registering import register
from tests.integration.tasks.purges import sql
from tests.servers.asgi_client import Answer, AsgiClient

__all__ = ["queries"]

MOST_STATEMENTS = 3
HEADER = "x-iceberg-access-delegation"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keys]:
    found = Keys()
    monkeypatch.setattr(VendingProfile, "KEYS", found, raising=False)
    monkeypatch.setitem(PROFILES, "bucket", VendingProfile)
    additions = KeptAdditions(100, clock=lambda: time.time() + found.ahead.total_seconds())
    for module in ("catalog.api.tables", "catalog.api.hot.tabulars"):
        monkeypatch.setattr(f"{module}.ADDITIONS", additions)
    yield found
    OBJECTS.clear()


@pytest.fixture
def warehouse(admin: AsgiClient, admin_context: RequestContext, keys: Keys) -> Warehouse:
    """Instead of the one in a directory; what its validation was issued does not count."""
    found = made(admin_context, "lake")
    keys.asked.clear()
    return found


@pytest.fixture
def orders(lake: Lake) -> str:
    """The location of a table."""
    location: str = lake.create_table("orders").json()["metadata"]["location"]
    return location


@pytest.fixture
def django_is_away(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, loads of tables fail unless they are answered hot."""

    def away() -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("this load was not answered hot")

        monkeypatch.setattr(TableEndpoint, "get", refuse)

    return away


def loaded(lake: Lake, *, wanted: str | None = None, **headers: str) -> Answer:
    sent = headers if wanted is None else {HEADER: wanted, **headers}
    return lake.client.get(lake.table("orders"), headers={name.replace("_", "-"): each for name, each in sent.items()})


def token(lake: Lake, **headers: str) -> str:
    (credential,) = loaded(lake, **headers).json()["storage-credentials"]
    found: str = credential["config"]["bucket.token"]
    return found


def test_credentials_come_apart_for_their_location_and_again_in_config(lake: Lake, orders: str) -> None:
    answer = loaded(lake)
    body = answer.json()
    config = {
        "bucket.endpoint": "http://one",
        "bucket.refresh": f"v1/{lake.warehouse_id}/namespaces/sales/tables/orders/credentials",
        "bucket.token": f"1 write {orders} http://one",
        "bucket.key": f"write {orders}",
    }
    assert body["storage-credentials"] == [{"prefix": orders, "config": config}]
    assert body["config"] == config
    assert answer.headers["cache-control"] == "private"
    assert "X-Iceberg-Access-Delegation" in answer.headers["vary"]


@pytest.mark.parametrize(
    ("wanted", "means"),
    [
        ("vended-credentials", "token"),
        ("vended-credentials,remote-signing", "token"),
        ("remote-signing", "signer"),
        (" Remote-Signing ,", "signer"),
        ("remote-signing,x-\xe9\xff,unknown", "signer"),
        ("unknown", "token"),
        ("", "token"),
        ("client-managed", "endpoint"),
    ],
)
@pytest.mark.parametrize("is_hot", [True, False])
def test_the_header_decides_as_far_as_it_is_known(
    lake: Lake, orders: str, monkeypatch: pytest.MonkeyPatch, *, wanted: str, means: str, is_hot: bool
) -> None:
    if not is_hot:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    for _ in range(2):
        body = loaded(lake, wanted=wanted).json()
        expected = {"bucket.endpoint"} | {"token": {"bucket.token", "bucket.key", "bucket.refresh"}}.get(
            means, {f"bucket.{means}"}
        )
        assert body["config"].keys() == expected
        assert ("storage-credentials" in body) is (means == "token")


@pytest.mark.parametrize(("privilege", "level"), [("describe", None), ("select", "read"), ("modify", "write")])
def test_each_caller_receives_as_much_as_they_may_do(
    lake: Lake, grant: Grant, orders: str, *, privilege: str, level: str | None
) -> None:
    grant("alice", privilege)
    alice = lake.as_user("alice")
    route = lake.table("orders", "credentials")
    for _ in range(3):
        found = loaded(alice).json().get("storage-credentials", [])
        assert [each["config"]["bucket.token"].split()[1] for each in found] == ([level] if level else [])
    answer = alice.client.get(route)
    if level is None:
        assert answer.error() == (403, "ForbiddenException")
    else:
        assert answer.json()["storage-credentials"] == loaded(alice).json()["storage-credentials"]


def test_who_creates_a_table_by_any_route_may_write_it(lake: Lake, grant: Grant) -> None:
    grant("maker", "create")
    maker = lake.as_user("maker")
    created = maker.create_table("one").json()
    staged = maker.create_table("two", stage_create=True).json()
    source = maker.create_table("three").json()["metadata-location"]
    assert lake.client.delete(lake.table("three")).status == 204
    registered = register(maker, "four", source).json()
    for body in (created, staged, registered):
        assert body["config"]["bucket.token"].split()[1:3] == ["write", body["metadata"]["location"]]


def test_a_staged_table_knows_the_routes_that_it_will_have(lake: Lake) -> None:
    body = lake.create_table("orders", stage_create=True).json()
    route = f"/catalog/{body['config']['bucket.refresh']}"
    assert lake.client.get(route).error()[0] == 404
    create = {"type": "assert-create"}
    metadata = body["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": metadata["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    assert lake.commit("orders", *updates, requirements=[create]).status == 200
    assert lake.client.get(route).json()["storage-credentials"][0]["prefix"] == metadata["location"]


@pytest.mark.parametrize("name", ["with space", "per%cent", "a.b", "é+ß", "q?#&"])
def test_the_route_to_new_credentials_leads_there_whatever_the_names(lake: Lake, name: str) -> None:
    assert lake.create_namespace("sales", name).status == 200
    body = lake.create_table(name, within=("sales", name)).json()
    route = body["config"]["bucket.refresh"]
    assert quote(name, safe="") in route
    again = lake.client.get(f"/catalog/{route}").json()["storage-credentials"]
    assert again == body["storage-credentials"]


def test_a_renamed_table_has_other_routes_at_once(lake: Lake, orders: str) -> None:
    for _ in range(2):
        assert "tables/orders/" in loaded(lake).json()["config"]["bucket.refresh"]
    body = {
        "source": {"namespace": ["sales"], "name": "orders"},
        "destination": {"namespace": ["sales"], "name": "sold"},
    }
    assert lake.client.post(lake.path("tables", "rename"), body).status == 204
    assert "tables/sold/" in lake.load("sold")["config"]["bucket.refresh"]


def test_new_credentials_are_asked_for_when_half_of_their_life_is_over(lake: Lake, orders: str, keys: Keys) -> None:
    assert {token(lake).split()[0] for _ in range(4)} == {"1"}
    keys.ahead = timedelta(minutes=29)
    assert token(lake).split()[0] == "1"
    keys.ahead = timedelta(minutes=31)
    assert {token(lake).split()[0] for _ in range(4)} == {"2"}


@pytest.mark.parametrize("is_hot", [True, False])
def test_a_tag_is_current_as_long_as_its_credentials_are(
    lake: Lake, orders: str, keys: Keys, monkeypatch: pytest.MonkeyPatch, *, is_hot: bool
) -> None:
    if not is_hot:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    tag = loaded(lake).headers["etag"]
    for _ in range(3):
        assert loaded(lake, if_none_match=tag).status == 304
    assert loaded(lake, wanted="client-managed", if_none_match=tag).status == 200
    keys.ahead = timedelta(minutes=31)
    answer = loaded(lake, if_none_match=tag)
    assert (answer.status, answer.headers["etag"] != tag) == (200, True)
    assert loaded(lake, if_none_match=answer.headers["etag"]).status == 304


def test_a_tag_holds_for_one_level_only(lake: Lake, orders: str, grant: Grant) -> None:
    grant("reader", "select")
    tag = loaded(lake).headers["etag"]
    assert loaded(lake.as_user("reader"), if_none_match=tag).status == 200


def test_a_tag_of_referenced_snapshots_says_which_credentials_too(lake: Lake, orders: str, keys: Keys) -> None:
    route = lake.table("orders", snapshots="refs")
    tag = lake.client.get(route).headers["etag"]
    assert lake.client.get(route, headers={"if-none-match": tag}).status == 304
    keys.ahead = timedelta(minutes=31)
    assert lake.client.get(route, headers={"if-none-match": tag}).status == 200


def test_loads_are_hot_while_document_and_credentials_are_in_memory(
    lake: Lake, orders: str, keys: Keys, django_is_away: Callable[[], None]
) -> None:
    tag = loaded(lake).headers["etag"]
    django_is_away()
    for _ in range(2):
        assert token(lake).split()[0] == "1"
        assert loaded(lake, if_none_match=tag).status == 304
    assert loaded(lake, wanted="client-managed").status == 500
    keys.ahead = timedelta(minutes=31)
    assert loaded(lake).status == 500


def test_a_table_is_created_on_the_event_loop_with_credentials_for_its_owner(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, queries: Counted
) -> None:
    lake.create_table("first")
    monkeypatch.setattr(TablesEndpoint, "post", lambda *_, **__: pytest.fail("this creation was not answered hot"))
    queries.take()
    made = lake.create_table("second")
    assert queries.take()[0] <= MOST_STATEMENTS
    location = made.json()["metadata"]["location"]
    (credential,) = made.json()["storage-credentials"]
    assert credential["prefix"] == location
    assert credential["config"]["bucket.key"] == f"write {location}"
    assert lake.client.get(lake.table("second")).headers["etag"] == made.headers["etag"]


def test_a_right_that_was_taken_away_counts_at_once(lake: Lake, orders: str, grant: Grant, keys: Keys) -> None:
    grant("alice", "select")
    alice = lake.as_user("alice")
    for _ in range(3):
        assert token(alice).split()[1] == "read"
    grant("alice", "modify")
    assert token(alice).split()[1] == "write"


def test_another_profile_of_the_warehouse_counts_at_once(
    lake: Lake, orders: str, admin: AsgiClient, keys: Keys
) -> None:
    for _ in range(3):
        assert token(lake).endswith("http://one")
    profile = {"type": "bucket", "bucket": "one", "key-prefix": "lake", "endpoint": "http://two"}
    answer = admin.post(f"/management/v1/warehouse/{lake.warehouse_id}/storage", {"storage-profile": profile})
    assert answer.status == 200, answer.body
    assert token(lake).endswith("http://two")


def test_a_commit_keeps_the_credentials_and_changes_the_tag(lake: Lake, orders: str) -> None:
    first = loaded(lake)
    assert lake.commit("orders", set_properties(color="red")).status == 200
    second = loaded(lake, if_none_match=first.headers["etag"])
    assert (second.status, second.json()["config"]) == (200, first.json()["config"])


def test_a_store_that_issues_nothing_is_named(lake: Lake, orders: str, keys: Keys) -> None:
    keys.error, keys.ahead = "STS refused: check the role", timedelta(hours=2)
    for route in (lake.table("orders"), lake.table("orders", "credentials")):
        answer = lake.client.get(route)
        assert answer.error() == (503, "ServiceUnavailableException")
        assert b"STS refused: check the role" in answer.body
        assert answer.headers["retry-after"]
    keys.error = None
    assert token(lake).split()[0] == "2"


def rows() -> list[tuple[int]]:
    return sql(
        "select count(*) from tabular union all select count(*) from reserved_location where kind = 'staged'"
        " union all select count(*) from outbox_event union all select count(*) from audit_entry where outcome = 'done'"
    )


CREATIONS: dict[str, Callable[[Lake], Answer]] = {
    "hot": lambda lake: lake.create_table("new"),
    "chosen": lambda lake: lake.create_table("new", location="bucket://one/lake/chosen"),
    "staged": lambda lake: lake.create_table("new", stage_create=True),
    "generic": lambda lake: lake.create_generic("new"),
}


@pytest.mark.parametrize("kind", CREATIONS)
def test_a_creation_that_gives_no_access_creates_nothing(lake: Lake, orders: str, keys: Keys, kind: str) -> None:
    before, files = rows(), set(OBJECTS)
    keys.error = "STS refused: check the role"
    answer = CREATIONS[kind](lake)
    assert answer.error() == (503, "ServiceUnavailableException")
    assert answer.message().startswith("The table was not created. ")
    assert "STS refused: check the role" in answer.message()
    assert rows() == before
    deadline = time.monotonic() + 10
    while set(OBJECTS) != files:  # what was written meanwhile is removed without waiting for it
        assert time.monotonic() < deadline, set(OBJECTS) - files
        time.sleep(0.02)
    keys.error = None
    assert CREATIONS[kind](lake).status == 200


def test_a_registration_is_answered_without_credentials_if_there_are_none(lake: Lake, orders: str, keys: Keys) -> None:
    file = lake.load("orders")["metadata-location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    keys.error, keys.ahead = "STS refused: check the role", timedelta(hours=2)
    answer = register(lake, "orders", file)
    assert answer.status == 200, answer.body
    assert "storage-credentials" not in answer.json()
    assert answer.json()["config"] == {"bucket.endpoint": "http://one"}
    keys.error = None
    assert loaded(lake, if_none_match=answer.headers["etag"]).json()["storage-credentials"]


def test_generic_tables_receive_credentials_of_their_own(lake: Lake, grant: Grant, keys: Keys) -> None:
    created: dict[str, Any] = lake.create_generic("birds").json()
    location = created["table"]["base-location"]
    ((prefix, config),) = [each.values() for each in created["storage-credentials"]]
    assert (prefix, config["bucket.token"].split()[1:3]) == (location, ["write", location])
    route = config["bucket.refresh"].removeprefix("http://catalog.test")
    grant("reader", "select")
    found = lake.as_user("reader").client.get(route).json()["storage-credentials"]
    assert [each["config"]["bucket.token"].split()[1] for each in found] == ["read"]
    plain = lake.client.get(lake.generic("birds"), headers={HEADER: "client-managed"}).json()
    assert (plain["config"], plain["storage-credentials"]) == ({"bucket.endpoint": "http://one"}, [])


def test_what_is_remembered_is_bounded() -> None:
    kept = KeptAdditions(2)
    each = [Loaded(uuid4(), 1, Epoch("project", 1), (), None, frozenset(), "") for _ in range(5)]
    for one in each:
        kept.keep(one, Addition(b""))
    assert [kept.find(one) is not None for one in each] == [False, False, False, True, True]
