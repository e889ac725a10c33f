"""Generic tables over HTTP: what a client asks for, what it is answered, and what Iceberg clients see of them."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from catalog.models import GenericTable, Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake, identifier

TABLE: dict[str, Any] = {
    "doc": "Pictures of birds",
    "properties": {"owner": "zoo", "": ""},
    "schema": {"fields": [{"name": "picture", "type": "binary"}], "id": 9223372036854775807},
    "statistics": {"rows": 18446744073709551615, "mean": 0.1, "empty": None},
}


@pytest.fixture
def base(warehouse: Warehouse) -> Path:
    return Path(warehouse.location.removeprefix("file://"))


@pytest.mark.parametrize("mount", ["/generic", "/lakekeeper"])
def test_what_is_created_is_loaded_and_listed(lake: Lake, mount: str) -> None:
    created = lake.client.post(lake.generic(mount=mount), {"name": "birds", "format": "lance", **TABLE})
    assert created.status == 200, created.body
    table = created.json()["table"]
    assert table == {
        "name": "birds",
        "format": "lance",
        "base-location": table["base-location"],
        "protected": False,
        **TABLE,
    }
    assert (created.json()["config"], created.json()["storage-credentials"]) == ({}, [])
    assert lake.client.get(lake.generic("birds", mount=mount)).json() == created.json()
    (listed,) = lake.client.get(lake.generic(mount=mount)).json()["identifiers"]
    assert listed == {"namespace": ["sales"], "name": "birds", "format": "lance", "id": listed["id"]}
    assert UUID(listed["id"]) == Tabular.objects.get(name="birds").uuid


def test_without_details_there_are_none(lake: Lake) -> None:
    table = lake.create_generic("birds", doc=None, schema=None, statistics=None, properties=None).json()["table"]
    assert table.keys() == {"name", "format", "base-location", "protected", "properties"}
    details = GenericTable.objects.get()
    assert (details.doc, details.schema, details.statistics, details.properties) == (None, None, None, {})


def test_json_is_answered_letter_by_letter(lake: Lake) -> None:
    schema = b'{"b": 1, "a":9007199254740993,"x":1.0, "e": 1E2, "a": -0.0, "t": "\\u00e9\\/"}'
    body = b'{"name": "birds", "format": "lance", "schema": ' + schema + b"}"
    answer = lake.client.call("POST", lake.generic(), body=body)
    assert answer.status == 200, answer.body
    assert schema in answer.body
    assert schema in lake.client.get(lake.generic("birds")).body


def test_the_name_is_shared_with_tables_and_views(lake: Lake) -> None:
    lake.create_table("orders")
    lake.create_view("report")
    assert lake.create_generic("birds").status == 200
    for taken in ("orders", "Report", "BIRDS"):
        assert lake.create_generic(taken).error() == (409, "AlreadyExistsException"), taken
    assert lake.create_table("birds").error() == (409, "AlreadyExistsException")
    assert "Generic table" in lake.create_table("birds").message()
    assert lake.create_view("birds").error() == (409, "AlreadyExistsException")
    staged = lake.create_table("birds", stage_create=True)
    assert staged.error() == (409, "AlreadyExistsException")


def test_iceberg_clients_never_see_one(lake: Lake) -> None:
    lake.create_generic("birds")
    for _ in range(3):  # the later ones are answered by the hot routes
        for route in (lake.namespace("sales", "tables"), lake.namespace("sales", "views")):
            assert lake.client.get(route).json()["identifiers"] == []
        assert lake.client.get(lake.table("birds")).error() == (404, "NoSuchTableException")
        assert lake.client.call("HEAD", lake.table("birds")).status == 404
        assert lake.client.get(lake.view("birds")).error() == (404, "NoSuchViewException")
        assert lake.commit("birds").error() == (404, "NoSuchTableException")
    assert lake.client.delete(lake.table("birds")).status == 404
    assert lake.client.delete(lake.view("birds")).status == 404
    assert lake.client.post(lake.table("birds", "unregister")).status == 404
    assert lake.client.post(lake.table("birds", "metrics"), {"report-type": "scan-report"}).status == 404
    move = {"source": identifier("birds"), "destination": identifier("owls")}
    assert lake.client.post(lake.path("tables", "rename"), move).error() == (404, "NoSuchTableException")
    change = {"identifier": identifier("birds"), "requirements": [], "updates": []}
    transaction = lake.client.post(lake.path("transactions", "commit"), {"table-changes": [change]})
    assert transaction.error() == (404, "NoSuchTableException")
    assert "generic" not in json.dumps(lake.client.get("/catalog/v1/config?warehouse=lake").json())
    assert lake.client.get(lake.generic("birds")).status == 200


def test_a_table_is_no_generic_table(lake: Lake) -> None:
    lake.create_table("orders")
    missing = (404, "NoSuchGenericTableException")
    assert lake.client.get(lake.generic("orders")).error() == missing
    assert lake.client.get(lake.generic("orders", "credentials")).error() == missing
    assert lake.client.delete(lake.generic("orders")).error() == missing
    assert lake.client.get(lake.generic("nothing")).error() == missing
    assert lake.client.get(lake.generic()).json() == {"identifiers": [], "next-page-token": None}


def test_a_registration_does_not_replace_one(lake: Lake) -> None:
    lake.create_generic("birds")
    metadata = lake.create_table("orders").json()["metadata-location"]
    lake.client.post(lake.table("orders", "unregister"))
    body = {"name": "birds", "metadata-location": metadata, "overwrite": True}
    assert lake.client.post(lake.namespace("sales", "register"), body).error() == (409, "AlreadyExistsException")


@pytest.mark.parametrize("name", ["Lance", "", "a" * 65, "-x", "a b", "ä", "a/b", "../x"])
def test_a_format_is_a_plain_token(lake: Lake, name: str) -> None:
    answer = lake.client.post(lake.generic(), {"name": "birds", "format": name})
    assert answer.error() == (400, "IllegalArgumentException")
    assert "format" in answer.message()
    assert lake.client.post(lake.generic(), {"name": "birds", "format": "a" * 64}).status == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": "", "format": "x"}, "empty"),
        ({"name": "a\x00b", "format": "x"}, "control character"),
        ({"format": "x"}, "name"),
        ({"name": "b"}, "format"),
        ({"name": "b", "format": None}, "format"),
        ({"name": "b", "format": "x", "properties": {"a": 1}}, "properties"),
        ({"name": "b", "format": "x", "properties": {"a": "\x00"}}, "U+0000"),
        ({"name": "b", "format": "x", "doc": "\x00"}, "U+0000"),
        ({"name": "b", "format": "x", "doc": "d" * 70_000}, "catalog.max_generic_doc_bytes"),
        ({"name": "b", "format": "x", "schema": "s" * (1024 * 1024)}, "catalog.max_generic_schema_bytes"),
        ({"name": "b", "format": "x", "statistics": "s" * (1024 * 1024)}, "catalog.max_generic_statistics_bytes"),
        ({"name": "b", "format": "x", "properties": {"k": "v" * 300_000}}, "catalog.max_property_value_bytes"),
        ([], "object"),
    ],
)
def test_bad_input_is_refused_by_name(lake: Lake, body: Any, said: str) -> None:
    answer = lake.client.post(lake.generic(), body)
    assert answer.status == 400, answer.body
    assert said in answer.message()
    assert not Tabular.objects.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a": 1,}',
        b"01",
        b"NaN",
        b'"\xff"',
        b'"\\ud800"',
        b"1e999",
        b'{"a" 1}',
    ],
    ids=["deep", "comma", "octal", "nan", "utf8", "surrogate", "infinite", "colon"],
)
@pytest.mark.parametrize("member", ["schema", "statistics", "doc"])
def test_what_is_not_json_is_refused(lake: Lake, member: str, raw: bytes) -> None:
    body = f'{{"name": "birds", "format": "lance", "{member}": '.encode() + raw + b"}"
    answer = lake.client.call("POST", lake.generic(), body=body)
    assert answer.status == 400, answer.body
    assert lake.client.get(lake.generic()).json()["identifiers"] == []


def test_a_location_is_inside_the_warehouse_empty_and_of_its_own(lake: Lake, base: Path) -> None:
    answer = lake.create_generic("birds", base_location=f"file://{base}/birds/")
    assert answer.json()["table"]["base-location"] == f"file://{base}/birds"
    table = lake.create_table("orders").json()["metadata"]["location"]
    (base / "full").mkdir()
    (base / "full" / "file").write_text("there already")
    refused = {
        f"file://{base}": 400,
        f"file://{base}/birds": 409,
        f"{base}/birds/": 400,
        f"file:{base}/birds": 409,
        f"file://localhost{base}/birds/inner": 400,
        f"file://{base}/birds/inner/": 409,
        table: 409,
        f"{table}/metadata": 409,
        f"file://{base}/full": 400,
        f"file://{base}/../outside": 400,
        f"file://{base}/a/../../outside": 400,
        f"file://{base}/a/./b": 400,
        f"file://{base}/a//b": 400,
        f"file://{base}-beside/a": 400,
        "s3://bucket/a": 400,
        "birds": 400,
        f"file://{base}/" + "x" * 2000: 400,
    }
    told = {location: lake.create_generic("owls", base_location=location).status for location in refused}
    assert told == refused
    assert lake.create_table("owls", location=f"file://{base}/birds").status == 409
    assert lake.create_table("owls", location=f"file://{base}/birds/inner").status == 409


def test_pages_hold_what_was_asked_for(lake: Lake) -> None:
    for number in range(5):
        assert lake.create_generic(f"t{number}").status == 200
    names: list[str] = []
    token: str | None = ""
    while token is not None:
        page = lake.client.get(lake.generic(pageSize="2", pageToken=token)).json()
        assert len(page["identifiers"]) <= 2
        names += [each["name"] for each in page["identifiers"]]
        token = page["next-page-token"]
    assert names == [f"t{number}" for number in range(5)]


def test_renaming_keeps_the_place_and_the_id(lake: Lake) -> None:
    lake.create_namespace("archive")
    before = lake.create_generic("birds", **TABLE).json()["table"]
    (known,) = lake.client.get(lake.generic()).json()["identifiers"]
    move = {"source": identifier("birds"), "destination": identifier("owls", "archive")}
    route = lake.path("generic-tables", "rename").replace("/catalog", "/generic", 1)
    assert lake.client.post(route, move).status == 204
    assert lake.client.get(lake.generic("birds")).status == 404
    after = lake.client.get(lake.generic("owls", within="archive")).json()["table"]
    assert after == {**before, "name": "owls"}
    (listed,) = lake.client.get(lake.generic(within="archive")).json()["identifiers"]
    assert listed["id"] == known["id"]
    assert lake.client.post(route, move).error() == (404, "NoSuchGenericTableException")
    lake.create_table("orders")
    taken = {"source": identifier("owls", "archive"), "destination": identifier("orders")}
    assert lake.client.post(route, taken).error() == (409, "AlreadyExistsException")


def test_credentials_are_for_readers_of_the_data(lake: Lake, grant: Grant) -> None:
    lake.create_generic("birds")
    grant("reader", "select")
    grant("looker", "describe")
    route = lake.generic("birds", "credentials", **{"referenced-by": "sales\x1freport"})
    assert lake.as_user("reader").client.get(route).json() == {"storage-credentials": []}
    assert lake.as_user("looker").client.get(route).error() == (403, "ForbiddenException")
    assert lake.as_user("stranger").client.get(route).status == 404


def test_changes_are_recorded_with_their_audit(lake: Lake) -> None:
    lake.create_generic("birds")
    move = {"source": identifier("birds"), "destination": identifier("owls")}
    lake.client.post(lake.path("generic-tables", "rename").replace("/catalog", "/generic", 1), move)
    lake.client.delete(lake.generic("owls", purgeRequested="true"))
    events = OutboxEvent.objects.filter(object_type="generic-table").order_by("sequence")
    assert [event.type for event in events] == ["createGenericTable", "renameGenericTable", "dropGenericTable"]
    assert events[0].data["format"] == "lance"
    assert all(event.data["location"].startswith("file://") for event in events)
    assert len({event.object_id for event in events}) == 1
    done = AuditEntry.objects.filter(object_type="generic-table", outcome="done").values_list("action", flat=True)
    assert sorted(done) == sorted(event.type for event in events)


def test_a_repeated_creation_is_answered_again(lake: Lake) -> None:
    headers = {"idempotency-key": "0190a7f0-0000-7000-8000-000000000001"}
    body = {"name": "birds", "format": "lance", **TABLE}
    first = lake.client.call("POST", lake.generic(), json=body, headers=headers)
    again = lake.client.call("POST", lake.generic(), json=body, headers=headers)
    assert (first.status, first.json()) == (again.status, again.json())
    assert Tabular.objects.count() == 1
