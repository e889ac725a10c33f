"""Search for tables and views by parts of their names."""

from typing import Any

import pytest
from django.db import connection

from catalog.access import tabular_chain
from catalog.models import Namespace, Tabular
from catalog.services import search
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(admin, str(warehouse.id))
    found.create_namespace("sales")
    found.create_namespace("sales", "Europe")
    found.create_namespace("hr")
    for name in ("orders", "order_items", "customers", "a%b_c", "Größe"):
        assert found.create_table(name).status == 200
    assert found.create_table("orders", within=("sales", "Europe")).status == 200
    assert found.create_table("staff", within="hr").status == 200
    assert found.create_view("recent_orders").status == 200
    return found


def ask(caller: AsgiClient, text: Any, warehouse: object) -> Answer:
    return caller.post(f"/management/v1/warehouse/{warehouse}/search-tabular", {"search": text})


def names(lake: Lake, text: str) -> list[str]:
    answer = ask(lake.client, text, lake.warehouse_id)
    assert answer.status == 200, answer.body
    found = answer.json()["tabulars"]
    assert [each["distance"] for each in found] == sorted(each["distance"] for each in found)
    return [".".join([*each["namespace-name"], each["tabular-name"]]) for each in found]


def test_the_nearest_comes_first(lake: Lake) -> None:
    assert names(lake, "orders")[:2] == ["sales.orders", "sales.Europe.orders"]
    assert names(lake, "orders")[2:] == ["sales.recent_orders", "sales.order_items", "sales.customers"]  # …ers
    assert names(lake, "europe.ORDERS")[0] == "sales.Europe.orders"
    assert names(lake, "custmers")[0] == "sales.customers"
    assert names(lake, "hr") == ["hr.staff"]
    assert names(lake, "GRÖSSE") == ["sales.Größe"]
    assert names(lake, "zyx_qqq") == []


def test_a_find_tells_all_that_is_needed_to_open_it(lake: Lake) -> None:
    view = Tabular.objects.get(kind="view")
    found = ask(lake.client, "sales.recent_orders", lake.warehouse_id).json()["tabulars"][0]
    assert found == {
        "namespace-name": ["sales"],
        "tabular-name": "recent_orders",
        "tabular-id": {"type": "view", "id": str(view.uuid)},
        "tabular-type": "view",
        "distance": 0.0,
    }


def test_signs_of_patterns_are_letters_like_others(lake: Lake) -> None:
    assert names(lake, "%%%") == []
    assert names(lake, "%") == ["sales.a%b_c"]
    assert names(lake, "\\") == []
    assert names(lake, "a%b_c") == ["sales.a%b_c"] or names(lake, "a%b_c")[0] == "sales.a%b_c"


def test_an_id_finds_its_tabular_or_what_a_namespace_holds(lake: Lake) -> None:
    table = Tabular.objects.get(name="staff")
    assert names(lake, str(table.uuid)) == ["hr.staff"]
    assert names(lake, str(Namespace.objects.get(path=["hr"]).id)) == ["hr.staff"]
    assert len(names(lake, str(Namespace.objects.get(path=["sales"]).id).upper())) == 6
    assert names(lake, "0197f1c2-0000-7000-8000-000000000000") == []


def test_no_more_than_ten_are_told(lake: Lake) -> None:
    for number in range(12):
        lake.create_table(f"copy_{number:02}", within="hr")
    assert len(names(lake, "copy")) == 10
    assert len(names(lake, str(Namespace.objects.get(path=["hr"]).id))) == 10


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("x" * 65, "at most 64"),
        ("a\u0000", "search"),
        ("a\u0007", "names cannot have"),
        (None, "search"),
        ([], "search"),
    ],
)
def test_a_wrong_search_is_refused(lake: Lake, text: Any, reason: str) -> None:
    answer = ask(lake.client, text, lake.warehouse_id)
    assert (answer.status, reason in answer.message()) == (400, True)


def test_only_what_the_caller_may_see_is_found(
    lake: Lake, client: AsgiClient, stranger: AsgiClient, grant: Any
) -> None:
    answer = ask(stranger, "orders", lake.warehouse_id)
    assert answer.error() == (404, "NoSuchWarehouseException")
    table = Tabular.objects.select_related("namespace__warehouse").get(name="customers")
    ledger.give(tabular_chain(table), [(PrincipalId("oidc~guest"), Privilege.SELECT)], granted_by=ADMIN)
    projects.bump_epoch(table.namespace.warehouse.project_id)
    guest = Lake(client.as_user("guest"), lake.warehouse_id)
    assert names(guest, "sales") == ["sales.customers"]
    assert names(guest, "staff") == []
    assert names(guest, str(table.namespace_id)) == ["sales.customers"]
    grant("reader", "describe")
    assert len(names(Lake(client.as_user("reader"), lake.warehouse_id), "orders")) == 5


def test_other_warehouses_are_not_searched(lake: Lake, warehouse: Warehouse) -> None:
    assert ask(lake.client, "orders", "0197f1c2-0000-7000-8000-000000000000").status == 404
    assert ask(lake.client, "orders", "lake").status == 404


def test_a_search_that_takes_too_long_says_so(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TIMEOUT_MS", 50)
    with monkeypatch.context() as slow:
        slow.setattr(search, "_NEAREST", "select gen_random_uuid(), 'x' from pg_sleep(2)")
        answer = ask(lake.client, "orders", lake.warehouse_id)
    assert answer.error() == (503, "ServiceUnavailableException")
    assert "took too long" in answer.message()
    assert names(lake, "staff") == ["hr.staff"]


def test_the_whole_name_is_found_among_many_that_share_a_part(
    lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 50)
    with connection.cursor() as cursor:
        cursor.execute(
            """insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location,
                                    metadata_location, version, created_at, updated_at)
               select gen_random_uuid(), warehouse_id, namespace_id, 'table', 'ordinal_' || k, 'ordinal_' || k,
                      gen_random_uuid(), location || k, metadata_location, 1, now(), now()
               from tabular t, generate_series(1, 2000) k where t.name = 'staff'"""
        )
    lake.create_table("ordering_the_last_one")
    assert names(lake, "ordering_the_last")[0] == "sales.ordering_the_last_one"
