"""Tags on warehouses, namespaces, tables, views and columns: set, changed, read, inherited and removed."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.models import Tabular, TagAttachment
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tenants.models import TagDefinition, Warehouse
from tests.integration.catalog.lake import Lake, identifier
from tests.integration.management.tagging import DEFINITION, M, column, defined, place, put, tags, take
from tests.servers.asgi_client import AsgiClient

OBJECTS = ("", "sales", "orders", "report", "birds")


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    """`sales` with the table `orders` the view `report` and the generic table `birds`, and `sales/eu` with the table `deep`."""
    found = Lake(admin, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    assert found.create_namespace("sales", "eu").status == 200
    assert found.create_table("orders").status == 200
    assert found.create_table("deep", within=("sales", "eu")).status == 200
    assert found.create_view("report").status == 200
    birds = {"name": "birds", "format": "lance"}
    assert admin.post(f"/generic/v1/{warehouse.id}/namespaces/sales/generic-tables", birds).status == 200
    return found


def soft(lake: Lake) -> None:
    body = {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}
    assert lake.client.post(f"{place(lake)}/delete-profile", body).status in {200, 204}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_tag_is_set_changed_and_removed(lake: Lake, name: str) -> None:
    where, definition = place(lake, name), defined(lake.client, "PII")
    first = put(lake.client, where, "pii", "high")
    assert first.status == 200, first.body
    told = first.json()
    assert told.pop("applied-at")
    assert told == {"tag-definition-id": definition, "name": "PII", "value": "high"}
    assert put(lake.client, where, "PII", "high").json() == first.json()
    second = put(lake.client, where, "PII", "low").json()
    assert (second["value"], second["applied-at"] > first.json()["applied-at"]) == ("low", True)
    (tag,) = lake.client.get(f"{where}/tags").json()["tags"]
    assert {**tag, "created-at": 0, "updated-at": 0} == {
        "tag-definition-id": definition,
        "name": "PII",
        "value": "low",
        "source": "manual",
        "created-at": 0,
        "updated-at": 0,
    }
    assert (take(lake.client, where, "PII").status, take(lake.client, where, "PII").status) == (204, 204)
    assert tags(lake.client, where) == {}
    events = list(OutboxEvent.objects.filter(type__endswith="Tag").order_by("sequence").values_list("type", "data"))
    assert [(kind, data.get("value"), data.get("before")) for kind, data in events] == [
        ("applyTag", "high", None),
        ("applyTag", "low", "high"),
        ("removeTag", None, "low"),
    ]
    assert AuditEntry.objects.filter(action__in=["applyTag", "removeTag"], outcome="done").count() == 3


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("marker", "x", "is a marker and has no value"),
        ("free-text", None, "'value' is missing"),
        ("free-text", "", "it is empty"),
        ("free-text", "x" * 257, "257 characters, at most 256"),
        ("free-text", "a\tb", "cannot be stored"),
        ("enumerated", None, "'value' is missing"),
        ("enumerated", "HIGH", "'HIGH' is not an allowed value of the tag pii: one of high, low"),
    ],
)
def test_a_value_that_the_tag_cannot_have_is_refused(lake: Lake, kind: str, value: str | None, message: str) -> None:
    more: dict[str, Any] = {"allowed_values": ["high", "low"]} if kind == "enumerated" else {}
    defined(lake.client, "pii", kind=kind, **more)
    answer = put(lake.client, place(lake, "orders"), "pii", value)
    assert answer.status == 400
    assert message in answer.message()
    assert not TagAttachment.objects.exists()


def test_values_may_be_of_any_writing_up_to_256_characters(lake: Lake) -> None:
    defined(lake.client, "note")
    for value in ("ש" * 256, "<script>alert(1)</script>", "👩‍👩‍👧", "'; drop table tabular; --", " x "):
        assert put(lake.client, place(lake, "orders"), "note", value).status == 200
        assert tags(lake.client, place(lake, "orders")) == {"note": value}


def test_a_marker_has_no_value(lake: Lake) -> None:
    defined(lake.client, "gold", kind="marker")
    assert "value" not in put(lake.client, place(lake, "sales"), "gold").json()
    assert tags(lake.client, place(lake, "sales")) == {"gold": None}


def test_a_tag_is_set_only_on_the_types_of_its_scope(lake: Lake) -> None:
    defined(lake.client, "pii", scope=["view", "column"])
    answer = put(lake.client, place(lake, "orders"), "pii", "x")
    assert answer.status == 400
    assert "cannot be set on a table: its scope is view, column" in answer.message()
    assert put(lake.client, place(lake, "report"), "pii", "x").status == 200
    assert put(lake.client, column(place(lake, "orders"), "id"), "pii", "x").status == 200


def test_a_tag_that_is_not_defined_is_not_found(lake: Lake) -> None:
    for call in (put(lake.client, place(lake), "pii", "x"), take(lake.client, place(lake), "pi\x00i")):
        assert call.error() == (404, "NoSuchTagDefinitionException")


def test_the_tags_of_another_project_are_not_found(lake: Lake) -> None:
    project = lake.client.post(f"{M}/project", {"project-name": "other"}).json()["project-id"]
    body = {"name": "theirs", "scope": ["table"], "value-kind": "marker"}
    made = lake.client.call("POST", DEFINITION, json=body, headers={"x-project-id": project}).json()
    assert put(lake.client, place(lake, "orders"), "theirs").error() == (404, "NoSuchTagDefinitionException")
    named = lake.client.call("GET", f"{DEFINITION}/{made['id']}", headers={"x-project-id": str("0" * 8)})
    assert named.error() == (404, "NoSuchTagDefinitionException")


def test_tags_are_inherited_and_the_nearest_counts(lake: Lake) -> None:
    for tag in ("a", "b", "c", "d"):
        defined(lake.client, tag)
    put(lake.client, place(lake), "a", "warehouse")
    put(lake.client, place(lake), "b", "warehouse")
    put(lake.client, place(lake, "sales"), "b", "sales")
    put(lake.client, place(lake, "sales"), "c", "sales")
    put(lake.client, place(lake, "sales/eu"), "c", "eu")
    put(lake.client, place(lake, "deep"), "d", "deep")
    put(lake.client, column(place(lake, "deep"), "id"), "a", "column")
    deep = place(lake, "deep")
    assert tags(lake.client, deep) == {"d": "deep"}
    assert tags(lake.client, deep, effective=True) == {"a": "warehouse", "b": "sales", "c": "eu", "d": "deep"}
    assert tags(lake.client, place(lake, "sales/eu"), effective=True) == {"a": "warehouse", "b": "sales", "c": "eu"}
    assert tags(lake.client, place(lake), effective=True) == {"a": "warehouse", "b": "warehouse"}
    assert tags(lake.client, column(deep, "id"), effective=True) == {"a": "column"}
    told = {each["name"]: each for each in lake.client.get(f"{deep}/tags?effective=true").json()["tags"]}
    sales = place(lake, "sales").rpartition("/")[2]
    assert told["a"]["inherited-from"] == {"type": "warehouse", "warehouse-id": lake.warehouse_id}
    assert told["b"]["inherited-from"] == {
        "type": "namespace",
        "warehouse-id": lake.warehouse_id,
        "namespace-id": sales,
    }
    assert "inherited-from" not in told["d"]
    own = lake.client.get(f"{place(lake, 'sales/eu')}/tags?effective=true").json()["tags"]
    assert ["inherited-from" in each for each in own] == [True, True, False]


def test_a_moved_table_inherits_from_its_new_place(lake: Lake) -> None:
    defined(lake.client, "area")
    put(lake.client, place(lake, "sales"), "area", "sales")
    put(lake.client, place(lake, "sales/eu"), "area", "eu")
    body = {"source": identifier("orders"), "destination": identifier("orders", ("sales", "eu"))}
    assert lake.client.post(lake.path("tables", "rename"), body).status == 204
    assert tags(lake.client, place(lake, "orders"), effective=True) == {"area": "eu"}


def test_a_column_keeps_its_tags_when_it_is_renamed(lake: Lake) -> None:
    defined(lake.client, "pii")
    orders = place(lake, "orders")
    assert put(lake.client, column(orders, "PLACE"), "pii", "high").status == 200
    schema = lake.load("orders")["metadata"]["schemas"][0]
    for each in schema["fields"]:
        each["name"] = "site" if each["name"] == "place" else each["name"]
    change(lake, schema)
    assert tags(lake.client, column(orders, "site")) == {"pii": "high"}
    assert lake.client.get(f"{column(orders, 'place')}/tags").error() == (404, "NoSuchColumnException")
    (found,) = lake.client.get(f"{orders}/column-tags").json()["columns"]
    field_id = next(each["id"] for each in schema["fields"] if each["name"] == "site")
    assert (found["field-id"], found["column-name"], found["tags"][0]["value"]) == (field_id, "site", "high")
    event = OutboxEvent.objects.get(type="applyTag")
    assert (event.object_type, event.data["field-id"], event.data["column"]) == ("table", field_id, "place")


def test_the_tags_of_a_dropped_column_hide_until_it_is_back_and_can_be_removed_by_its_field_id(lake: Lake) -> None:
    defined(lake.client, "pii")
    orders = place(lake, "orders")
    put(lake.client, column(orders, "place"), "pii", "high")
    schema = lake.load("orders")["metadata"]["schemas"][0]
    (left,) = [each["id"] for each in schema["fields"] if each["name"] == "place"]
    change(lake, {**schema, "fields": [each for each in schema["fields"] if each["id"] != left]})
    assert lake.client.get(f"{orders}/column-tags").json() == {"columns": []}
    assert put(lake.client, column(orders, str(left)), "pii", "x").status == 404
    assert lake.commit("orders", {"action": "set-current-schema", "schema-id": 0}).status == 200
    assert tags(lake.client, column(orders, "place")) == {"pii": "high"}
    assert lake.commit("orders", {"action": "set-current-schema", "schema-id": 1}).status == 200
    assert take(lake.client, column(orders, str(left)), "pii").status == 204
    assert not TagAttachment.objects.exists()


def test_nested_columns_are_named_with_dots(lake: Lake) -> None:
    defined(lake.client, "pii")
    address = {"type": "struct", "fields": [{"id": 3, "name": "zip", "type": "string", "required": False}]}
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "address", "type": address, "required": False},
            {"id": 2, "name": "a/b", "type": "long", "required": False},
            {"id": 4, "name": "A", "type": "long", "required": False},
            {"id": 5, "name": "a", "type": "long", "required": False},
        ],
    }
    assert lake.create_table("people", schema=schema).status == 200
    people = place(lake, "people")
    for name in ("address.zip", "a/b", "A"):
        assert put(lake.client, column(people, name), "pii", name).status == 200
        assert tags(lake.client, column(people, name)) == {"pii": name}
    names = [each["column-name"] for each in lake.client.get(f"{people}/column-tags").json()["columns"]]
    assert sorted(names) == ["A", "a/b", "address.zip"]
    assert lake.client.get(f"{column(people, 'zip')}/tags").status == 404
    assert tags(lake.client, column(people, "a")) == {}


def test_soft_deletion_keeps_tags_and_undrop_brings_them_back(lake: Lake) -> None:
    soft(lake)
    definition = defined(lake.client, "pii")
    for name in ("orders", "report", "sales/eu", "deep"):
        assert put(lake.client, place(lake, name), "pii", name).status == 200
    orders = place(lake, "orders")
    assert lake.client.delete(lake.table("orders")).status == 204
    assert lake.client.get(f"{orders}/tags").status == 404
    assert put(lake.client, orders, "pii", "x").status == 404
    listed = lake.client.get(f"{DEFINITION}/{definition}/attachments").json()["attachments"]
    assert [each["value"] for each in listed] == ["report", "sales/eu", "deep"]
    in_use = lake.client.delete(f"{DEFINITION}/{definition}")
    assert in_use.error() == (409, "TagInUseException")
    assert "is set on 4 objects" in in_use.message()
    target = {"type": "table", "id": orders.rpartition("/")[2]}
    undrop = lake.client.post(f"{place(lake)}/deleted-tabulars/undrop", {"targets": [target]})
    assert undrop.status == 204
    assert tags(lake.client, orders) == {"pii": "orders"}


@pytest.mark.parametrize("is_soft", [False, True], ids=["hard", "forced"])
def test_a_permanent_drop_removes_the_tags(lake: Lake, *, is_soft: bool) -> None:
    if is_soft:
        soft(lake)
    definition = defined(lake.client, "pii")
    for name in (*OBJECTS, "deep"):
        put(lake.client, place(lake, name), "pii", "x")
    put(lake.client, column(place(lake, "deep"), "id"), "pii", "x")
    assert lake.client.delete(lake.table("orders", force="true")).status == 204
    assert lake.client.delete(lake.namespace("sales", recursive="true", force="true")).status == 204
    assert list(TagAttachment.objects.values_list("target_type", flat=True)) == ["warehouse"]
    assert lake.client.delete(place(lake)).status in {204, 409}
    take(lake.client, place(lake), "pii")
    assert lake.client.delete(f"{DEFINITION}/{definition}").status == 204


def change(lake: Lake, schema: dict[str, Any]) -> None:
    last = max(each["id"] for each in schema["fields"])
    answer = lake.commit(
        "orders",
        {"action": "add-schema", "schema": {**schema, "schema-id": 1}, "last-column-id": last},
        {"action": "set-current-schema", "schema-id": -1},
    )
    assert answer.status == 200, answer.body


def found(lake: Lake, tag: str, value: str | None = None, search: str = "") -> list[str]:
    wanted = {"name": tag} if value is None else {"name": tag, "value": value}
    answer = lake.client.post(f"{place(lake)}/search-tabular", {"search": search, "tag": wanted})
    assert answer.status == 200, answer.body
    return [each["tabular-name"] for each in answer.json()["tabulars"]]


def test_tables_are_found_by_a_tag_that_is_set_inherited_or_on_a_column(lake: Lake) -> None:
    for tag in ("pii", "area"):
        defined(lake.client, tag)
    assert lake.create_table("other").status == 200
    put(lake.client, place(lake, "report"), "pii", "low")
    put(lake.client, column(place(lake, "orders"), "place"), "pii", "high")
    put(lake.client, place(lake, "sales/eu"), "pii", "high")
    assert found(lake, "PII") == ["deep", "orders", "report"]
    assert found(lake, "pii", "high") == ["deep", "orders"]
    assert found(lake, "pii", search="orders")[0] == "orders"
    put(lake.client, place(lake, "deep"), "pii", "low")
    assert found(lake, "pii", "high") == ["orders"]
    put(lake.client, place(lake), "area", "all")
    put(lake.client, place(lake, "sales"), "area", "some")
    assert found(lake, "area") == ["birds", "deep", "orders", "other", "report"]
    assert found(lake, "area", "all") == []
    assert found(lake, "area", "some") == ["birds", "deep", "orders", "other", "report"]
    gone = lake.client.post(f"{place(lake)}/search-tabular", {"tag": {"name": "gone"}})
    assert gone.error() == (404, "NoSuchTagDefinitionException")


def test_thousands_of_tags_on_one_object_are_read_by_as_many_statements_as_few(lake: Lake) -> None:
    orders = place(lake, "orders")

    def statements() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert lake.client.get(f"{orders}/tags?effective=true").status == 200
        return len(asked)

    defined(lake.client, "first")
    put(lake.client, orders, "first", "x")
    few = (statements(), statements())[1]
    table = Tabular.objects.get(name="orders")
    definitions = TagDefinition.objects.bulk_create(
        TagDefinition(
            id=uuid4(),
            project_id=table.warehouse.project_id,
            name=f"t{number}",
            name_key=f"t{number}",
            scope=["table"],
            value_kind="marker",
        )
        for number in range(3000)
    )
    TagAttachment.objects.bulk_create(
        TagAttachment(definition=each, target_type="table", warehouse=table.warehouse, tabular=table, applied_by="x")
        for each in definitions
    )
    assert len(tags(lake.client, orders)) == 3001
    assert statements() == few
