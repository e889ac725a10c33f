"""Generic tables in the management API: counted, found, checked, explained, granted and named in tasks."""

from typing import Any

import pytest

from catalog.models import Tabular
from lakewarden.usage import call_statistics
from lakewarden.usage.call_counter import COUNTS
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


@pytest.fixture
def birds(lake: Lake) -> Tabular:
    assert lake.create_table("orders").status == 200
    assert lake.create_view("report").status == 200
    assert lake.create_generic("birds").status == 200
    return Tabular.objects.get(name="birds")


def route(lake: Lake, rest: str) -> str:
    return f"/management/v1/warehouse/{lake.warehouse_id}/{rest}"


def test_they_are_counted_apart(lake: Lake, birds: Tabular, admin: AsgiClient) -> None:
    (hour, *_) = admin.get(route(lake, "statistics")).json()["stats"]
    counted = [hour[f"number-of-{kind}"] for kind in ("tables", "views", "generic-tables")]
    assert counted == [1, 1, 1]


@pytest.mark.parametrize("text", ["birds", "BIRD", "{id}"])
def test_they_are_found(lake: Lake, birds: Tabular, admin: AsgiClient, text: str) -> None:
    search = {"search": text.replace("{id}", str(birds.uuid))}
    found = admin.post(route(lake, "search-tabular"), search).json()["tabulars"]
    assert [each["tabular-id"] for each in found] == [{"type": "generic-table", "id": str(birds.uuid)}]


def test_checks_name_them_by_id_or_name(lake: Lake, birds: Tabular, grant: Grant) -> None:
    grant("reader", "select")
    within = {"warehouse-id": lake.warehouse_id}
    named = {**within, "namespace": ["sales"]}
    ways: list[dict[str, Any]] = [
        {**within, "generic-table-id": str(birds.uuid)},
        {**within, "table-id": str(birds.uuid)},
        {**named, "generic-table": "birds"},
        {**named, "table": "birds"},
    ]
    asked = [
        {"operation": {kind: {"action": action, **way}}}
        for way in ways
        for kind, action in (("generic-table", "read_data"), ("generic-table", "drop"), ("table", "read_data"))
    ]
    answer = lake.as_user("reader").client.post("/management/v1/action/batch-check", {"checks": asked})
    assert [each["allowed"] for each in answer.json()["results"]] == [True, False, False] * len(ways)


def test_rights_are_granted_explained_and_taken(lake: Lake, birds: Tabular, admin: AsgiClient) -> None:
    assert admin.as_user("ada").get("/management/v1/whoami").status == 200
    ada, path = lake.as_user("ada"), route(lake, f"generic-table/{birds.uuid}")
    entry = {"privilege": "write", "principal": {"user": "oidc~ada"}}
    assert admin.post(f"{path}/grants", {"writes": [entry]}).status == 204
    told = admin.get(f"{path}/grants?principalUser=oidc~ada").json()["grants"]
    resource = {"type": "generic-table", "warehouse-id": lake.warehouse_id, "generic-table-id": str(birds.uuid)}
    assert [each["resource"] for each in told] == [resource]
    assert ada.client.get(ada.generic("birds")).status == 200
    actions = {each["action"] for each in ada.client.get(f"{path}/actions").json()["allowed-actions"]}
    assert {"read_data", "write_data"} <= actions
    assert actions.isdisjoint({"drop", "commit"})
    why = ada.client.get(f"{path}/explanation?action=write_data").json()
    assert (why["allowed"], why["because"][0]["grant"]["object-type"]) == (True, "generic-table")
    who = admin.get(f"{path}/who-may?action=write_data").json()["principals"]
    assert {"user": "oidc~ada"} in [each["principal"] for each in who]
    assert admin.post(f"{path}/grants", {"deletes": [entry]}).status == 204
    assert ada.client.get(ada.generic("birds")).status == 404
    create = admin.post(f"{path}/grants", {"writes": [{**entry, "privilege": "create"}]})
    assert create.error() == (400, "BadRequestException")


def test_a_task_says_what_it_is_about(lake: Lake, birds: Tabular, admin: AsgiClient) -> None:
    assert lake.client.delete(lake.generic("birds", purgeRequested="true")).status == 204
    entity = {"type": "generic-table", "generic-table-id": str(birds.uuid)}
    (task,) = admin.post(route(lake, "task/list"), {"entities": [entity]}).json()["tasks"]
    assert task["entity"] == {**entity, "warehouse-id": lake.warehouse_id}
    assert task["entity-name"] == ["sales", "birds"]
    for wrong in ({"type": "generic-table"}, {"type": "table", "generic-table-id": str(birds.uuid)}):
        assert admin.post(route(lake, "task/list"), {"entities": [wrong]}).status == 400


@pytest.mark.parametrize("mount", ["/generic", "/lakekeeper"])
def test_calls_are_counted_by_their_route(lake: Lake, birds: Tabular, admin: AsgiClient, mount: str) -> None:
    COUNTS.take()
    for _ in range(2):
        assert lake.client.get(lake.generic("birds", mount=mount)).status == 200
    call_statistics.flush()
    told = admin.post("/management/v1/endpoint-statistics", {"warehouse": {"type": "all"}}).json()["called-endpoints"]
    counted = {(call["http-route"], call["status-code"]): call["count"] for calls in told for call in calls}
    path = f"GET {mount}/v1/{{prefix}}/namespaces/{{namespace}}/generic-tables/{{table}}"
    assert counted == {(path, 200): 2}
