"""Protection of tables and views: from dropping, unregistering and being replaced, and from nothing else."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from catalog.models import Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.servers.asgi_client import Answer, AsgiClient

MISSING = "0197f1c2-0000-7000-8000-000000000000"


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    """The warehouse as its owner sees it, with the table `sales.orders` and the view `sales.recent`."""
    found = Lake(admin, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    assert found.create_table("orders").status == 200
    assert found.create_view("recent").status == 200
    return found


def route(name: str, *, warehouse: object = None, kind: str = "") -> str:
    found = Tabular.objects.get(name=name)
    return f"/management/v1/warehouse/{warehouse or found.warehouse_id}/{kind or found.kind}/{found.uuid}/protection"


def protect(caller: AsgiClient, name: str, **body: Any) -> Answer:
    return caller.post(route(name), {"protected": True} | body)


@pytest.mark.parametrize(("name", "event"), [("orders", "setTableProtection"), ("recent", "setViewProtection")])
def test_protection_is_told_and_recorded(lake: Lake, admin: AsgiClient, name: str, event: str) -> None:
    assert admin.get(route(name)).json()["protected"] is False
    told = protect(admin, name, reason="audit").json()
    assert told["protected-by"] == "oidc~admin"
    assert told["reason"] == "audit"
    assert told["protected-at"] <= told["updated-at"]
    assert admin.get(route(name)).json() == told
    entry = AuditEntry.objects.get(action=event)
    assert (entry.details["name"], entry.details["namespace"], entry.details["protected"]) == (name, ["sales"], True)
    assert OutboxEvent.objects.filter(type=event, object_id=entry.object_id).count() == 1


@pytest.mark.parametrize("purge", ["true", "false"])
def test_a_protected_table_is_not_dropped_until_that_is_lifted(lake: Lake, admin: AsgiClient, purge: str) -> None:
    protect(admin, "orders")
    answer = admin.delete(lake.table("orders", purgeRequested=purge))
    assert answer.error() == (409, "ProtectedException")
    assert route("orders") in answer.message()
    assert lake.load("orders")
    admin.post(route("orders"), {"protected": False})
    assert admin.delete(lake.table("orders", purgeRequested=purge)).status == 204


def test_a_protected_view_is_not_dropped(lake: Lake, admin: AsgiClient) -> None:
    protect(admin, "recent")
    assert admin.delete(lake.view("recent")).error() == (409, "ProtectedException")
    assert admin.get(lake.view("recent")).status == 200


def test_a_protected_table_is_not_unregistered_or_replaced(lake: Lake, admin: AsgiClient) -> None:
    protect(admin, "orders")
    assert admin.post(lake.table("orders", "unregister")).error() == (409, "ProtectedException")
    metadata = lake.load("orders")["metadata-location"]
    body = {"name": "orders", "metadata-location": metadata, "overwrite": True}
    assert admin.post(lake.namespace("sales", "register"), body).error() == (409, "ProtectedException")
    assert Tabular.everything.filter(name="orders").count() == 1


def test_a_protected_table_is_written_renamed_and_moved_with_its_namespace(lake: Lake, admin: AsgiClient) -> None:
    protect(admin, "orders")
    for _ in range(2):
        before = lake.load("orders")
    assert lake.commit("orders", set_properties(owner="me")).status == 200
    assert lake.load("orders") != before
    rename = {"source": identifier("orders"), "destination": identifier("renamed")}
    assert admin.post(lake.path("tables", "rename"), rename).status == 204
    assert admin.get(route("renamed")).json()["protected"] is True
    assert admin.delete(lake.table("renamed")).status == 409


def test_a_namespace_of_protected_tables_is_not_empty(lake: Lake, admin: AsgiClient) -> None:
    protect(admin, "orders")
    assert admin.delete(lake.namespace("sales")).error() == (409, "NamespaceNotEmptyException")


@pytest.mark.parametrize(("name", "wrong"), [("orders", "view"), ("recent", "table")])
def test_what_is_of_another_kind_or_elsewhere_is_missing(lake: Lake, admin: AsgiClient, name: str, wrong: str) -> None:
    kind = Tabular.objects.get(name=name).kind
    for path, error in (
        (route(name, kind=wrong), f"NoSuch{wrong.capitalize()}Exception"),
        (route(name, warehouse=MISSING), f"NoSuch{kind.capitalize()}Exception"),
        (route(name, warehouse="lake"), f"NoSuch{kind.capitalize()}Exception"),
        (f"/management/v1/warehouse/{lake.warehouse_id}/{kind}/{MISSING}/protection", None),
        (f"/management/v1/warehouse/{lake.warehouse_id}/{kind}/{name}/protection", None),
    ):
        expected = error or f"NoSuch{kind.capitalize()}Exception"
        assert admin.post(path, {"protected": True}).error() == (404, expected), path
        assert admin.get(path).status == 404
    assert not Tabular.everything.filter(protection__isnull=False).exists()


@pytest.mark.parametrize("name", ["orders", "recent"])
def test_a_writer_cannot_lift_protection(
    lake: Lake, admin: AsgiClient, client: AsgiClient, grant: Any, name: str
) -> None:
    for user, privilege in (("reader", "select"), ("writer", "write"), ("maker", "create"), ("editor", "modify")):
        grant(user, privilege)
    protect(admin, name)
    for user in ("reader", "writer", "maker"):
        caller = client.as_user(user)
        assert caller.get(route(name)).status == 200
        assert caller.post(route(name), {"protected": False}).error() == (403, "ForbiddenException")
    assert client.as_user("stranger").get(route(name)).status == 404
    assert client.as_user("stranger").post(route(name), {"protected": False}).status == 404
    assert client.as_user("editor").post(route(name), {"protected": False}).status == 200


@pytest.mark.parametrize("body", [{}, {"protected": None}, {"protected": True, "reason": "x" * 1001}, {"x": 1}])
def test_a_wrong_body_is_refused(lake: Lake, admin: AsgiClient, body: Any) -> None:
    assert admin.post(route("orders"), body).error()[0] == 400


def test_protecting_and_dropping_at_once_leaves_one_of_both_orders(lake: Lake, admin: AsgiClient) -> None:
    outcomes = set()
    for _ in range(8):
        assert lake.create_table("racy").status == 200
        target = route("racy")
        with ThreadPoolExecutor(2) as pool:
            protecting = pool.submit(admin.post, target, {"protected": True})
            dropping = pool.submit(admin.delete, lake.table("racy"))
        outcome = (protecting.result().status, dropping.result().status)
        assert outcome in {(200, 409), (404, 204)}
        outcomes.add(outcome)
        if outcome == (200, 409):
            assert admin.get(lake.table("racy")).status == 200
            admin.post(target, {"protected": False})
            assert admin.delete(lake.table("racy")).status == 204


def test_lists_tell_ids_and_protection_when_asked(lake: Lake, admin: AsgiClient) -> None:
    lake.create_table("bills")
    protect(admin, "orders")
    protect(admin, "recent")
    asked = {"returnUuids": "true", "returnProtectionStatus": "true"}
    tables = admin.get(lake.namespace("sales", "tables", **asked)).json()
    assert [each["name"] for each in tables["identifiers"]] == ["bills", "orders"]
    assert tables["table-uuids"] == [str(Tabular.objects.get(name=name).uuid) for name in ("bills", "orders")]
    assert tables["protection-status"] == [False, True]
    views = admin.get(lake.namespace("sales", "views", **asked)).json()
    assert views["table-uuids"] == [str(Tabular.objects.get(name="recent").uuid)]
    assert views["protection-status"] == [True]
    for _ in range(2):  # the second by the hot path
        assert set(admin.get(lake.namespace("sales", "tables")).json()) == {"identifiers", "next-page-token"}
