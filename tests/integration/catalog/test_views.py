"""View routes: create, load, replace, rename, register, drop."""

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.models import Tabular
from tests.integration.catalog.lake import SCHEMA, VIEW_VERSION, Lake, identifier, set_properties
from tests.integration.catalog.observed import Recorded, local
from tests.servers.asgi_client import Answer


def load(lake: Lake, name: str, **options: Any) -> Any:
    answer = lake.client.get(lake.view(name, **options))
    assert answer.status == 200, answer.body
    return answer.json()


def replace(
    lake: Lake, name: str, *updates: dict[str, Any], requirements: list[dict[str, Any]] | None = None
) -> Answer:
    body: dict[str, Any] = {"updates": list(updates)}
    if requirements is not None:
        body["requirements"] = requirements
    return lake.client.post(lake.view(name), body)


def new_version(sql: str) -> list[dict[str, Any]]:
    representations = [{"type": "sql", "sql": sql, "dialect": "spark"}]
    version = {**VIEW_VERSION, "version-id": 2, "schema-id": 0, "representations": representations}
    return [
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]


def rename(lake: Lake, source: dict[str, Any], destination: dict[str, Any]) -> Answer:
    return lake.client.post(lake.path("views", "rename"), {"source": source, "destination": destination})


def test_create_load_and_file_agree(lake: Lake, recorded: Recorded) -> None:
    created = lake.create_view("report", properties={"comment": "weekly"}).json()
    metadata = created["metadata"]
    assert metadata["properties"] == {"comment": "weekly"}
    assert metadata["versions"][0]["representations"] == VIEW_VERSION["representations"]
    assert load(lake, "REPORT") == created
    assert json.loads(local(created["metadata-location"]).read_bytes()) == metadata
    assert recorded() == ["createView"]


def test_replace_adds_a_version(lake: Lake, recorded: Recorded) -> None:
    before = lake.create_view("report").json()
    requirement = {"type": "assert-view-uuid", "uuid": before["metadata"]["view-uuid"]}
    answer = replace(lake, "report", *new_version("select 1"), requirements=[requirement])
    after = answer.json()
    assert answer.status == 200
    assert after["metadata"]["current-version-id"] == 2
    assert [each["version-id"] for each in after["metadata"]["versions"]] == [1, 2]
    assert after["metadata-location"] != before["metadata-location"]
    assert load(lake, "report") == after
    assert recorded() == ["createView", "updateView"]


def test_replace_without_a_change_keeps_the_file(lake: Lake, recorded: Recorded) -> None:
    before = lake.create_view("report", properties={"a": "b"}).json()
    again = {"action": "set-current-view-version", "view-version-id": 1}
    assert replace(lake, "report", again).json() == before
    assert recorded() == ["createView"]


def test_replace_whose_requirement_fails(lake: Lake, recorded: Recorded) -> None:
    before = lake.create_view("report").json()
    requirement = {"type": "assert-view-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    answer = replace(lake, "report", set_properties(a="b"), requirements=[requirement])
    assert answer.error() == (409, "CommitFailedException")
    assert load(lake, "report") == before
    assert recorded() == ["createView"]


@pytest.mark.parametrize("update", [{"action": "add-snapshot"}, {"action": "fly"}, {}, [], 7])
def test_replace_with_an_update_that_is_none_of_a_view(lake: Lake, update: Any) -> None:
    lake.create_view("report")
    assert replace(lake, "report", update).error() == (400, "BadRequestException")


def test_replace_of_a_missing_view_or_of_a_table(lake: Lake) -> None:
    lake.create_table("orders")
    for name in ("nowhere", "orders"):
        assert replace(lake, name, set_properties(a="b")).error() == (404, "NoSuchViewException")


@pytest.mark.parametrize("taken", ["table", "view"])
def test_names_are_shared_with_tables(lake: Lake, taken: str) -> None:
    (lake.create_table if taken == "table" else lake.create_view)("Report")
    answer = lake.create_view("report")
    assert answer.error() == (409, "AlreadyExistsException")
    assert answer.message().startswith("Table with same name" if taken == "table" else "View already exists")


def test_create_in_a_missing_namespace(lake: Lake) -> None:
    assert lake.create_view("report", within="nowhere").error() == (404, "NoSuchNamespaceException")


def test_head_and_list_tell_views_alone(lake: Lake) -> None:
    lake.create_table("orders")
    for name in ("b", "A"):
        lake.create_view(name)
    assert lake.client.head(lake.view("a")).status == 204
    assert lake.client.head(lake.view("orders")).status == 404
    listed = lake.client.get(lake.namespace("sales", "views")).json()
    assert listed["identifiers"] == [identifier("A"), identifier("b")]


def test_rename_across_namespaces(lake: Lake, recorded: Recorded) -> None:
    lake.create_namespace("hr")
    before = lake.create_view("report").json()
    assert rename(lake, identifier("report"), identifier("summary", "hr")).status == 204
    assert load(lake, "summary", within="hr") == before
    assert lake.client.head(lake.view("report")).status == 404
    assert recorded()[-1] == "renameView"


def test_rename_refused(lake: Lake) -> None:
    lake.create_view("report")
    lake.create_table("orders")
    taken = rename(lake, identifier("report"), identifier("ORDERS"))
    assert taken.error() == (409, "AlreadyExistsException")
    assert taken.message() == "Cannot rename sales.report to sales.ORDERS. Table already exists"
    assert rename(lake, identifier("orders"), identifier("b")).error() == (404, "NoSuchViewException")
    assert rename(lake, identifier("report"), identifier("b", "nowhere")).error() == (404, "NoSuchNamespaceException")


def test_drop(lake: Lake, recorded: Recorded) -> None:
    lake.create_view("report")
    lake.create_table("orders")
    assert lake.client.delete(lake.view("report")).status == 204
    assert lake.client.delete(lake.view("report")).error() == (404, "NoSuchViewException")
    assert lake.client.delete(lake.view("orders")).error() == (404, "NoSuchViewException")
    assert Tabular.objects.get().name == "orders"
    assert recorded() == ["createView", "createTable", "dropView"]


def test_register_brings_a_dropped_view_back(lake: Lake, recorded: Recorded) -> None:
    before = lake.create_view("report").json()
    lake.client.delete(lake.view("report"))
    body = {"name": "summary", "metadata-location": before["metadata-location"]}
    assert lake.client.post(lake.namespace("sales", "register-view"), body).json() == before
    assert load(lake, "summary") == before
    assert recorded()[-1] == "registerView"


def test_register_refused(lake: Lake, base: Path) -> None:
    told = lake.create_view("report").json()
    table = lake.create_table("orders").json()
    file = base / "v" / "table.metadata.json"
    file.parent.mkdir()
    file.write_bytes(local(table["metadata-location"]).read_bytes())
    route = lake.namespace("sales", "register-view")
    answers = {
        name: lake.client.post(route, {"name": name, "metadata-location": location}).error()
        for name, location in {
            "report": told["metadata-location"],
            "orders": told["metadata-location"],
            "again": told["metadata-location"],
            "a-table": f"file://{file}",
            "missing": f"file://{base}/missing.json",
        }.items()
    }
    assert answers == {
        "report": (409, "AlreadyExistsException"),
        "orders": (409, "AlreadyExistsException"),
        "again": (409, "AlreadyExistsException"),
        "a-table": (400, "ValidationException"),
        "missing": (400, "ValidationException"),
    }
