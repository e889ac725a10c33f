"""Namespace routes: create, load, list, change, drop."""

from typing import Any

import pytest

from catalog.models import Namespace
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import Recorded

ODD_NAMES = [
    "a.b",
    "two words",
    "1+1",
    "50%",
    "a/b",
    "ünïcödé",
    "数据",
    "%1F",
    "'; drop table x",
    "\\",
    "🦆",
    "a&b=c?d#e",
    " a ",
]


def names(lake: Lake, **query: str) -> list[list[str]]:
    told = lake.client.get(lake.path("namespaces", **query)).json()
    assert told["next-page-token"] is None
    return list(told["namespaces"])


def test_create_and_load(lake: Lake, recorded: Recorded) -> None:
    created = lake.create_namespace("hr", properties={"owner": "eve"})
    location = created.json()["properties"]["location"]
    assert created.json()["namespace"] == ["hr"]
    assert created.json()["properties"] == {"owner": "eve", "location": location}
    assert location == f"{lake_location(lake)}/{Namespace.objects.get(path=['hr']).id}"
    assert lake.client.get(lake.namespace("hr")).json() == created.json()
    assert recorded() == ["createNamespace"]


def test_only_the_location_is_told_when_no_properties_were_given(lake: Lake) -> None:
    told = lake.client.get(lake.namespace("sales")).json()
    assert told["namespace"] == ["sales"]
    assert list(told["properties"]) == ["location"]


def test_tables_lie_below_the_location_of_their_namespace(lake: Lake) -> None:
    mine = f"{lake_location(lake)}/mine"
    lake.create_namespace("hr", properties={"location": mine + "/"})
    assert lake.client.get(lake.namespace("hr")).json()["properties"]["location"] == mine
    lake.create_table("people", within="hr")
    assert lake.load("people", within="hr")["metadata"]["location"].startswith(mine + "/")


def test_a_location_outside_the_warehouse_is_refused(lake: Lake) -> None:
    answer = lake.create_namespace("hr", properties={"location": "file:///elsewhere"})
    assert answer.error() == (400, "IllegalArgumentException")
    assert "not inside the warehouse" in answer.message()


@pytest.mark.parametrize("change", [{"removals": ["location"]}, {"updates": {"location": "file:///elsewhere"}}])
def test_the_location_of_a_namespace_stays(lake: Lake, change: dict[str, object]) -> None:
    answer = lake.client.post(lake.namespace("sales", "properties"), change)
    assert answer.error() == (400, "IllegalArgumentException")
    assert "cannot be changed" in answer.message()


def lake_location(lake: Lake) -> str:
    return Warehouse.objects.get(id=lake.warehouse_id).location


def test_nested_namespaces_are_listed_level_by_level(lake: Lake) -> None:
    for path in (("a",), ("a", "b"), ("a", "b", "c"), ("a", "d")):
        assert lake.create_namespace(*path).json()["namespace"] == list(path)
    assert names(lake) == [["a"], ["sales"]]
    assert names(lake, parent="") == [["a"], ["sales"]]
    assert names(lake, parent="a") == [["a", "b"], ["a", "d"]]
    assert names(lake, parent="a\x1fb") == [["a", "b", "c"]]
    assert names(lake, parent="a%1Fb") == [["a", "b", "c"]]
    assert names(lake, parent="a\x1fd") == []
    assert lake.client.get(lake.namespace(("a", "b", "c"))).json()["namespace"] == ["a", "b", "c"]


@pytest.mark.parametrize("parent", ["nowhere", "sales\x1fnowhere"])
def test_a_missing_parent_is_named(lake: Lake, parent: str, recorded: Recorded) -> None:
    listed = lake.client.get(lake.path("namespaces", parent=parent))
    created = lake.create_namespace(*parent.split("\x1f"), "child")
    for answer in (listed, created):
        assert answer.error() == (404, "NoSuchNamespaceException")
        assert "nowhere" in answer.message()
    assert recorded() == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_survive_every_route(lake: Lake, name: str) -> None:
    assert lake.create_namespace(name).status == 200
    assert lake.create_namespace(name, name).status == 200
    assert lake.client.get(lake.namespace((name, name))).json()["namespace"] == [name, name]
    assert lake.client.head(lake.namespace((name, name))).status == 204
    assert [name] in names(lake)
    assert names(lake, parent=name) == [[name, name]]
    assert lake.create_table(name, within=(name, name)).status == 200
    assert lake.load(name, within=(name, name))["metadata"]["location"]
    listed = lake.client.get(lake.namespace((name, name), "tables")).json()["identifiers"]
    assert listed == [{"namespace": [name, name], "name": name}]
    assert lake.client.delete(lake.table(name, within=(name, name))).status == 204
    assert lake.client.delete(lake.namespace((name, name))).status == 204


def test_a_space_may_come_as_plus(lake: Lake) -> None:
    lake.create_namespace("two words")
    assert lake.client.get(lake.path("namespaces") + "/two+words").json()["namespace"] == ["two words"]


@pytest.mark.parametrize(
    ("first", "second"), [("Hr", "hR"), ("straße", "STRASSE"), ("é", "e\u0301"), ("sales", "SALES")]
)
def test_names_that_differ_only_in_case_or_composition_are_one(lake: Lake, first: str, second: str) -> None:
    lake.create_namespace(first)
    again = lake.create_namespace(second)
    assert again.error() == (409, "AlreadyExistsException")
    assert second in again.message()
    assert lake.client.get(lake.namespace(second)).json()["namespace"] == [first]


def test_a_child_is_stored_below_its_parent_as_that_is_written(lake: Lake) -> None:
    assert lake.create_namespace("SALES", "Emea").json()["namespace"] == ["sales", "Emea"]


def test_create_existing_is_refused_and_changes_nothing(lake: Lake, recorded: Recorded) -> None:
    assert lake.create_namespace("sales", properties={"a": "b"}).error() == (409, "AlreadyExistsException")
    assert lake.client.get(lake.namespace("sales")).json()["properties"].keys() == {"location"}
    assert recorded() == []


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ([], "empty"),
        ([""], "empty"),
        (["sales", ""], "empty"),
        (["a\tb"], "control"),
        (["a\x1fb"], "control"),
        (["a\x00b"], "control"),
        (["sales", "\x7f"], "control"),
        (["x" * 256], "255"),
    ],
)
def test_names_that_cannot_be_are_refused(lake: Lake, path: list[str], word: str, recorded: Recorded) -> None:
    answer = lake.create_namespace(*path)
    assert answer.error() == (400, "IllegalArgumentException")
    assert word in answer.message()
    assert recorded() == []


@pytest.mark.parametrize("path", [["a\x00b", "c"], ["sales", "\x00", "c"], ["sales\x1fx", "c"]])
def test_control_characters_in_a_parent_are_refused(lake: Lake, path: list[str]) -> None:
    assert lake.create_namespace(*path).status in {400, 404}


@pytest.mark.parametrize("name", ["a\x00b", "a\x00", "\x7f"])
def test_a_path_with_control_characters_finds_nothing(lake: Lake, name: str) -> None:
    assert lake.client.get(lake.namespace(name)).error() == (404, "NoSuchNamespaceException")
    assert lake.client.get(lake.path("namespaces", parent=name)).error() == (404, "NoSuchNamespaceException")
    assert lake.client.get(lake.table(name)).error() == (404, "NoSuchTableException")
    assert lake.client.get(lake.view(name)).error() == (404, "NoSuchViewException")


def test_sixteen_levels_work(lake: Lake) -> None:
    path = tuple(f"level-{number}" for number in range(16))
    for depth in range(1, 17):
        assert lake.create_namespace(*path[:depth]).status == 200
    assert lake.create_table("deep", within=path).status == 200
    deeper = lake.create_namespace(*path, "level-16")
    assert deeper.error() == (400, "IllegalArgumentException")
    assert "at most 16" in deeper.message()


def test_the_longest_names_work_until_their_path_is_too_long(lake: Lake) -> None:
    wide = [chr(0x4E00 + number) * 255 for number in range(4)]
    answers = [lake.create_namespace(*wide[:depth]) for depth in range(1, 5)]
    assert [answer.status for answer in answers] == [200, 200, 400, 400]
    assert answers[2].error() == (400, "IllegalArgumentException")
    assert "2000" in answers[2].message()


def test_properties_are_updated_removed_and_reported_missing(lake: Lake, recorded: Recorded) -> None:
    lake.create_namespace("hr", properties={"keep": "1", "old": "2", "change": "3"})
    body = {"removals": ["old", "gone", "old"], "updates": {"change": "4", "new": ""}}
    told = lake.client.post(lake.namespace("hr", "properties"), body).json()
    assert told == {"updated": ["change", "new"], "removed": ["old"], "missing": ["gone"]}
    kept = lake.client.get(lake.namespace("hr")).json()["properties"]
    assert {key: value for key, value in kept.items() if key != "location"} == {"keep": "1", "change": "4", "new": ""}
    assert recorded() == ["createNamespace", "updateNamespaceProperties"]


@pytest.mark.parametrize("body", [{}, {"removals": None, "updates": None}, {"removals": [], "updates": {}}])
def test_no_property_change_is_none(lake: Lake, body: dict[str, Any]) -> None:
    told = lake.client.post(lake.namespace("sales", "properties"), body).json()
    assert told == {"updated": [], "removed": [], "missing": []}


def test_a_key_both_removed_and_updated_is_unprocessable(lake: Lake, recorded: Recorded) -> None:
    body = {"removals": ["a", "b"], "updates": {"b": "1"}}
    answer = lake.client.post(lake.namespace("sales", "properties"), body)
    assert answer.error() == (422, "UnprocessableEntityException")
    assert "b is both" in answer.message()
    assert recorded() == []


@pytest.mark.parametrize("properties", [{"a": "\x00"}, {"\x00": "a"}])
def test_text_that_cannot_be_kept_is_refused(lake: Lake, properties: dict[str, str]) -> None:
    assert lake.create_namespace("hr", properties=properties).error() == (400, "IllegalArgumentException")
    body = {"updates": properties}
    assert lake.client.post(lake.namespace("sales", "properties"), body).error()[0] == 400


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_missing_namespace_is_named(lake: Lake, method: str) -> None:
    answer = lake.client.call(method, lake.namespace(("sales", "nowhere")))
    assert answer.error() == (404, "NoSuchNamespaceException")
    assert "sales.nowhere" in answer.message()
    assert lake.client.post(lake.namespace("nowhere", "properties"), {}).error()[0] == 404


def test_head_tells_there_or_not(lake: Lake) -> None:
    assert lake.client.head(lake.namespace("sales")).status == 204
    assert lake.client.head(lake.namespace("nowhere")).status == 404


def test_drop_an_empty_namespace(lake: Lake, recorded: Recorded) -> None:
    assert lake.client.delete(lake.namespace("sales")).status == 204
    assert not Namespace.objects.exists()
    assert lake.client.delete(lake.namespace("sales")).error() == (404, "NoSuchNamespaceException")
    assert recorded() == ["dropNamespace"]


def test_drop_with_a_child_a_table_or_a_view_is_refused(lake: Lake, recorded: Recorded) -> None:
    lake.create_namespace("parent")
    lake.create_namespace("parent", "child")
    lake.create_namespace("views")
    lake.create_table("orders")
    lake.create_view("orders", within="views")
    before = recorded()
    for name in ("parent", "sales", "views"):
        answer = lake.client.delete(lake.namespace(name))
        assert answer.error() == (409, "NamespaceNotEmptyException")
        assert name in answer.message()
    assert recorded() == before
