"""Where new namespaces and tables are, in each storage layout; on the event loop and through Django."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lakewarden import asgi
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import AsgiClient

BY_NAME = {"type": "full-hierarchy", "namespace": "{name}", "tabular": "{name}"}
BY_NAME_AND_ID = {"type": "full-hierarchy", "namespace": "{name}-{uuid}", "tabular": "{name}-{uuid}"}
TABLES_ONLY = {"type": "tabular-only", "tabular": "{name}-{uuid}"}

Lay = Callable[[Any], None]


@pytest.fixture(params=[True, False], ids=["event loop", "Django"])
def is_hot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    return bool(request.param)


@pytest.fixture
def plain(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    """The warehouse without any namespace."""
    return Lake(engine, str(warehouse.id))


@pytest.fixture
def lay(admin: AsgiClient, warehouse: Warehouse) -> Lay:
    """Sets the warehouse's layout."""

    def call(layout: Any) -> None:
        profile = {**warehouse.storage_profile, "storage-layout": layout}
        answer = admin.post(f"/management/v1/warehouse/{warehouse.id}/storage", {"storage-profile": profile})
        assert answer.status == 200, answer.body
        assert answer.json()["storage-profile"] == profile

    return call


def made(lake: Lake, *path: str) -> str:
    answer = lake.create_namespace(*path)
    assert answer.status == 200, answer.body
    return str(answer.json()["properties"]["location"])


def table_in(lake: Lake, path: tuple[str, ...], name: str = "orders") -> str:
    answer = lake.create_table(name, within=path)
    assert answer.status == 200, answer.body
    return str(answer.json()["metadata"]["location"])


@pytest.mark.usefixtures("is_hot")
def test_a_hierarchy_of_names(lay: Lay, plain: Lake, warehouse: Warehouse) -> None:
    lay(BY_NAME)
    assert made(plain, "sales") == f"{warehouse.location}/sales"
    assert made(plain, "sales", "the east") == f"{warehouse.location}/sales/the%20east"
    for name in ("orders", "bills"):
        assert table_in(plain, ("sales", "the east"), name) == f"{warehouse.location}/sales/the%20east/{name}"
    view = plain.create_view("report", within="sales").json()
    assert view["metadata"]["location"] == f"{warehouse.location}/sales/report"


@pytest.mark.usefixtures("is_hot")
def test_a_hierarchy_with_ids(lay: Lay, plain: Lake, warehouse: Warehouse) -> None:
    lay(BY_NAME_AND_ID)
    above = made(plain, "sales")
    assert above.startswith(f"{warehouse.location}/sales-")
    inner = made(plain, "sales", "east")
    assert inner.startswith(f"{above}/east-")
    for name in ("orders", "bills", "orders2"):
        assert table_in(plain, ("sales", "east"), name).startswith(f"{inner}/{name}-")


@pytest.mark.usefixtures("is_hot")
def test_tables_only(lay: Lay, plain: Lake, warehouse: Warehouse) -> None:
    lay(TABLES_ONLY)
    assert made(plain, "sales") == made(plain, "hr") == made(plain, "hr", "pay") == warehouse.location
    found = [table_in(plain, path, name) for path in (("sales",), ("hr", "pay")) for name in ("orders", "bills")]
    assert [each.removeprefix(f"{warehouse.location}/").partition("-")[0] for each in found] == [
        "orders",
        "bills",
        "orders",
        "bills",
    ]
    assert plain.create_table("chosen", within="sales", location=f"{warehouse.location}/mine").status == 200
    answer = plain.create_table("other", within="hr", location=f"{warehouse.location}/mine/inner")
    assert answer.error() == (409, "AlreadyExistsException")


@pytest.mark.usefixtures("is_hot")
def test_a_namespace_keeps_its_folder_when_the_layout_changes(lay: Lay, plain: Lake, warehouse: Warehouse) -> None:
    before = made(plain, "sales")
    lay(BY_NAME)
    assert table_in(plain, ("sales",)) == f"{before}/orders"
    assert made(plain, "sales", "east") == f"{before}/east"
    lay(TABLES_ONLY)
    assert table_in(plain, ("sales",), "bills").startswith(f"{before}/bills-")
    answer = plain.client.get(plain.namespace("sales"))
    assert answer.json()["properties"]["location"] == before


@pytest.mark.usefixtures("is_hot")
def test_a_name_whose_folder_is_taken_is_refused(lay: Lay, plain: Lake, warehouse: Warehouse) -> None:
    lay(BY_NAME)
    made(plain, "sales")
    table_in(plain, ("sales",), "orders")
    assert plain.create_namespace("sales", "orders").error() == (409, "AlreadyExistsException")
    made(plain, "sales", "east")
    assert plain.create_table("east").error() == (409, "AlreadyExistsException")
    body = {
        "source": {"namespace": ["sales"], "name": "orders"},
        "destination": {"namespace": ["sales"], "name": "old"},
    }
    assert plain.client.post(plain.path("tables", "rename"), body).status == 204
    answer = plain.create_table("orders")
    assert answer.error() == (409, "AlreadyExistsException")
    assert "/sales/orders" in answer.message()


@pytest.mark.usefixtures("is_hot")
@pytest.mark.parametrize("name", ["..", "."])
def test_a_name_that_would_lead_elsewhere_is_refused(lay: Lay, plain: Lake, name: str) -> None:
    lay(BY_NAME)
    made(plain, "sales")
    for answer in (plain.create_namespace(name), plain.create_table(name)):
        assert answer.status == 400
        assert "Invalid location" in answer.message()


def test_a_namespace_that_is_named_by_its_folder_cannot_be_moved(
    lay: Lay, plain: Lake, admin: AsgiClient, warehouse: Warehouse
) -> None:
    lay(BY_NAME)
    made(plain, "sales")
    shown = admin.get(plain.namespace("sales", returnUuid="true")).json()
    at = f"/management/v1/warehouse/{warehouse.id}/namespace/{shown['namespace-uuid']}/move"
    answer = admin.post(at, {"destination": ["trade"]})
    assert answer.status == 400
    assert "full-hierarchy" in answer.message()
    assert admin.post(at, {"destination": ["sales"]}).status == 200
    lay(TABLES_ONLY)
    assert admin.post(at, {"destination": ["trade"]}).status == 200


def test_two_creations_at_one_folder_race_in_the_database(lay: Lay, plain: Lake) -> None:
    """A table and a namespace whose folders would be the same: exactly one of them is made, in every round."""
    lay(BY_NAME)
    made(plain, "sales")
    with ThreadPoolExecutor(2) as threads:
        for name in ("a", "b", "c", "d", "e"):
            table = threads.submit(plain.create_table, name)
            namespace = threads.submit(plain.create_namespace, "sales", name)
            assert sorted([table.result(60).status, namespace.result(60).status]) == [200, 409]


def test_the_dry_run_names_a_bad_template(admin: AsgiClient, warehouse: Warehouse) -> None:
    profile = {**warehouse.storage_profile, "storage-layout": {"type": "tabular-only", "tabular": "{name}"}}
    at = f"/management/v1/warehouse/{warehouse.id}/storage"
    report = admin.post(f"{at}/validate-profile", {"storage-profile": profile}).json()
    (failed,) = [each for each in report["checks"] if each["status"] == "failed"]
    assert failed["name"] == "profile-well-formed"
    assert "storage-layout.tabular-only.tabular" in failed["reason"]
    assert admin.post(at, {"storage-profile": profile}).status == 400


@pytest.mark.usefixtures("is_hot")
def test_a_folder_by_name_stays_with_its_first_table_whatever_happens_to_the_name(lay: Lay, plain: Lake) -> None:
    """Somebody who may create in the namespace wants the folder of a table that was renamed, and then dropped."""
    lay(BY_NAME)
    made(plain, "sales")
    first = table_in(plain, ("sales",), "orders")

    def rename(source: str, target: str) -> int:
        body = {
            "source": {"namespace": ["sales"], "name": source},
            "destination": {"namespace": ["sales"], "name": target},
        }
        return plain.client.post(plain.path("tables", "rename"), body).status

    def is_refused() -> bool:
        tries = [
            plain.create_table("orders"),
            plain.create_table("orders", within="sales", **{"stage-create": True}),
            plain.create_table("elsewhere", location=first),
            plain.create_table("inside", location=f"{first}/data"),
            plain.create_view("orders"),
            plain.create_generic("orders"),
            plain.create_namespace("sales", "orders"),
        ]
        return {each.status for each in tries} <= {400, 409}  # 400: files are left there

    assert rename("orders", "old") == 204
    assert is_refused()
    assert rename("old", "orders") == 204
    assert rename("orders", "older") == 204
    assert is_refused()
    assert plain.load("older")["metadata"]["location"] == first
    assert plain.client.delete(plain.table("older", purgeRequested="false")).status == 204
    assert is_refused()
