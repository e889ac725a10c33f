"""Lists for a caller with rights on single tables only: what they contain, in pages, and how many queries they need."""

import pytest

from catalog.models import Tabular
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def alice(client: AsgiClient, lake: Lake, admin: AsgiClient) -> AsgiClient:
    """She may read `sales.t3`, `sales.t7` and `sales.europe.deep`; all else is hidden from her."""
    alice = client.as_user("alice")
    assert alice.get("/management/v1/whoami").status == 200
    catalog = f"/catalog/v1/{lake.warehouse_id}/namespaces"
    for names in (["archive"], ["sales", "europe"], ["sales", "asia"]):
        assert admin.post(catalog, {"namespace": names}).status == 200
    for number in range(10):
        assert lake.create_table(f"t{number}").status == 200
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    assert admin.post(f"{catalog}/sales%1Feurope/tables", {"name": "deep", "schema": schema}).status == 200
    for table in Tabular.objects.filter(name__in=["t3", "t7", "deep"]):
        entry = {"privilege": "select", "principal": {"user": "oidc~alice"}}
        path = f"/management/v1/warehouse/{lake.warehouse_id}/table/{table.uuid}/grants"
        assert admin.post(path, {"writes": [entry]}).status == 204
    return alice


def listed(answer_json: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["name"] for each in answer_json["identifiers"]]


def test_only_what_the_caller_has_a_right_on_or_in_is_listed(alice: AsgiClient, lake: Lake) -> None:
    catalog = f"/catalog/v1/{lake.warehouse_id}/namespaces"
    assert alice.get(catalog).json()["namespaces"] == [["sales"]]
    assert alice.get(f"{catalog}?parent=sales").json()["namespaces"] == [["sales", "europe"]]
    assert listed(alice.get(f"{catalog}/sales/tables").json()) == ["t3", "t7"]
    assert listed(alice.get(f"{catalog}/sales%1Feurope/tables").json()) == ["deep"]
    assert listed(alice.get(f"{catalog}/sales/views").json()) == []
    assert alice.get(f"{catalog}/archive/tables").status == 404
    warehouses = alice.get("/management/v1/warehouse").json()["warehouses"]
    assert [each["id"] for each in warehouses] == [str(lake.warehouse_id)]
    assert len(alice.get("/management/v1/project-list").json()["projects"]) == 1


def test_a_filtered_page_is_full_as_long_as_there_is_more(alice: AsgiClient, lake: Lake) -> None:
    tables = f"/catalog/v1/{lake.warehouse_id}/namespaces/sales/tables"
    first = alice.get(f"{tables}?pageSize=1").json()
    assert listed(first) == ["t3"]
    second = alice.get(f"{tables}?pageSize=1&pageToken={first['next-page-token']}").json()
    assert listed(second) == ["t7"]
    assert second.get("next-page-token") is None


def test_an_engine_with_the_whole_warehouse_sees_all(lake: Lake, alice: AsgiClient) -> None:
    tables = f"/catalog/v1/{lake.warehouse_id}/namespaces/sales/tables"
    assert listed(lake.client.get(tables).json()) == [f"t{number}" for number in range(10)]


def test_rights_of_roles_count_and_a_right_to_pass_on_shows_no_table(
    alice: AsgiClient, admin: AsgiClient, lake: Lake
) -> None:
    role = admin.post("/management/v1/role", {"name": "readers"}).json()["id"]
    admin.post(f"/management/v1/role/{role}/members", {"members": [{"user": "oidc~alice"}]})
    for name, principal, privilege in (
        ("t5", {"role": role}, "describe"),
        ("t6", {"user": "oidc~alice"}, "pass_grants"),
    ):
        table = Tabular.objects.get(name=name)
        path = f"/management/v1/warehouse/{lake.warehouse_id}/table/{table.uuid}/grants"
        assert admin.post(path, {"writes": [{"privilege": privilege, "principal": principal}]}).status == 204
    tables = f"/catalog/v1/{lake.warehouse_id}/namespaces/sales/tables"
    assert listed(alice.get(tables).json()) == ["t3", "t5", "t7"]
    assert admin.delete(f"/management/v1/role/{role}").status == 204
    assert listed(alice.get(tables).json()) == ["t3", "t7"]


def test_a_revoked_table_is_gone_from_the_very_next_list(alice: AsgiClient, admin: AsgiClient, lake: Lake) -> None:
    tables = f"/catalog/v1/{lake.warehouse_id}/namespaces/sales/tables"
    assert listed(alice.get(tables).json()) == ["t3", "t7"]
    table = Tabular.objects.get(name="t3")
    entry = {"privilege": "select", "principal": {"user": "oidc~alice"}}
    admin.post(f"/management/v1/warehouse/{lake.warehouse_id}/table/{table.uuid}/grants", {"deletes": [entry]})
    assert listed(alice.get(tables).json()) == ["t7"]
