"""Requests that are wrong in themselves: the right status, our error shape, nothing changed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from catalog.api.urls import CAPABILITIES
from lakewarden.audit.models import AuditEntry
from tests.integration.catalog.lake import SCHEMA, Lake, add_snapshot, set_branch
from tests.integration.catalog.routes import CASES
from tests.servers.asgi_client import AsgiClient

POSTS = [each for each in CAPABILITIES if each.startswith("POST ") and CASES[each].body is not None]


def url(lake: Lake, route: str) -> str:
    path = route.split(" ")[1].format(prefix=lake.warehouse_id, namespace="sales", table="orders", view="report")
    return "/catalog" + path


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.create_table("orders")
    lake.create_view("report")
    return lake


@pytest.mark.parametrize("route", POSTS)
def test_a_body_that_is_not_what_the_route_takes(filled: Lake, route: str) -> None:
    before = AuditEntry.objects.count()
    bodies = [
        *(b"", b"{", b'{"a":', b"nonsense", b"\xff\xfe\x00", b"\x00", b"{}{}"),
        *(b"null", b"true", b"7", b'"text"', b"[]", b"[[]]"),
        b"[" * 200_000 + b"]" * 200_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    ]
    for body in bodies:
        answer = filled.client.post(url(filled, route), body=body)
        assert answer.error() == (400, "BadRequestException"), body[:40]
    for member in CASES[route].body:
        wrong: Any
        for wrong in (7, True, "text", None, [7], {"a": 7}, [{"a": []}], 10**400):
            answer = filled.client.post(url(filled, route), json={**CASES[route].body, member: wrong})
            assert answer.status < 500, (member, wrong)
    # what is wrong in a member that nobody reads, or is left out, may succeed
    recorded = set(AuditEntry.objects.order_by("id")[before:].values_list("action", flat=True))
    assert recorded <= {"createNamespace", "updateNamespaceProperties", "createTable", "createView"}


def test_a_body_beyond_the_limit(lake: Lake) -> None:
    answer = lake.client.post(lake.path("namespaces"), body=b'{"namespace": ["' + b"x" * 33 * 1024 * 1024)
    assert answer.error() == (413, "PayloadTooLargeException")
    assert str(32 * 1024 * 1024) in answer.message()
    assert answer.headers["connection"] == "close"


def test_a_large_body_within_the_limit(lake: Lake) -> None:
    lake.create_table("orders")
    field = {"id": 3, "name": "more", "type": "string", "required": False, "doc": "x" * 4_000_000}
    big = {"action": "add-schema", "schema": {**SCHEMA, "fields": [field]}}
    assert lake.commit("orders", big).status == 200
    assert len(lake.load("orders")["metadata"]["schemas"][1]["fields"][0]["doc"]) == 4_000_000


@pytest.mark.parametrize("prefix", ["nowhere", "lake", "00000000", "%00", "%20", "..%2F", "a" * 3000, "%FF"])
def test_a_prefix_that_is_no_warehouse(lake: Lake, prefix: str) -> None:
    for path in ("namespaces", "namespaces/sales", "namespaces/sales/tables/orders", "namespaces/sales/views/v"):
        answer = lake.client.get(f"/catalog/v1/{prefix}/{path}")
        assert answer.error() == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize(
    "path", ["", "/", "/x", "/{id}", "/{id}/nothing", "/{id}/namespaces/sales/tables/a/b/c", "/{id}//namespaces"]
)
def test_an_unknown_route_is_said_in_our_shape(lake: Lake, path: str) -> None:
    answer = lake.client.get("/catalog/v1" + path.format(id=lake.warehouse_id))
    assert answer.error() == (404, "NoSuchRouteException")


def test_an_unknown_method(lake: Lake) -> None:
    answer = lake.client.call("PATCH", lake.namespace("sales"))
    assert answer.error() == (405, "MethodNotAllowedException")
    assert answer.headers["allow"] == "GET, HEAD, DELETE"
    assert lake.client.call("BREW", lake.namespace("sales")).error()[0] == 405


def test_more_parameters_than_anybody_needs(lake: Lake) -> None:
    answer = lake.client.get(lake.path("namespaces") + "?" + "&".join(f"p{number}=1" for number in range(2000)))
    assert answer.error() == (400, "BadRequestException")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 10**30, 1.5, "1", True])
def test_numbers_that_are_no_64_bit_integers(lake: Lake, number: Any) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    before = lake.load("orders")
    snapshot = add_snapshot(1, sequence=1, location=location)
    snapshot["snapshot"]["snapshot-id"] = number
    assert lake.commit("orders", snapshot, set_branch("main", 1)).error()[0] == 400
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": number}
    assert lake.commit("orders", requirements=[requirement]).error()[0] == 400
    assert lake.load("orders") == before


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**53 + 1])
def test_64_bit_integers_are_exact(lake: Lake, number: int) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    lake.commit("orders", add_snapshot(number, sequence=1, location=location), set_branch("main", number))
    assert lake.load("orders")["metadata"]["current-snapshot-id"] == number


@pytest.mark.parametrize(
    "schema",
    [
        None,
        7,
        [],
        {},
        {"type": "struct"},
        {"type": "struct", "fields": [{}]},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "required": True, "type": "int128"}]},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "required": True, "type": {"type": "list"}}]},
        {"type": "struct", "fields": [{"id": 2**31, "name": "a", "required": True, "type": "int"}]},
        {"type": "struct", "fields": [SCHEMA["fields"][0], {**SCHEMA["fields"][1], "name": "id"}]},
    ],
)
def test_schemas_that_cannot_be(lake: Lake, schema: Any) -> None:
    for answer in (lake.create_table("orders", schema=schema), lake.create_view("report", schema=schema)):
        assert answer.error()[0] == 400


def test_a_deeply_nested_schema_is_refused(lake: Lake) -> None:
    type_: Any = "int"
    for _ in range(300):
        type_ = {"type": "struct", "fields": [{"id": 1, "name": "a", "required": True, "type": type_}]}
    assert lake.create_table("orders", schema=type_).error() == (400, "BadRequestException")


def test_a_schema_of_ten_thousand_columns_is_too_wide_and_one_less_is_not(lake: Lake) -> None:
    fields = [{"id": n, "name": f"column {n}", "required": False, "type": "string"} for n in range(10_000)]
    refused = lake.create_table("wide", schema={"type": "struct", "fields": fields})
    assert refused.error() == (400, "BadRequestException")
    assert "10000" in refused.message()
    quick = replace(lake, client=AsgiClient(lake.client.headers))  # the document's check takes seconds here
    told = quick.create_table("wide", schema={"type": "struct", "fields": fields[1:]}).json()
    assert told["metadata"]["last-column-id"] == 9_999


def test_unknown_members_of_a_request_are_ignored(lake: Lake) -> None:
    body = {"namespace": ["hr"], "properties": {}, "x-extra": {"a": [1]}}
    assert lake.client.post(lake.path("namespaces"), body).status == 200
    assert lake.create_table("orders", x_extra={"a": [1]}).status == 200


@pytest.mark.parametrize("given", ["a b", "x" * 65, "é", ""])
def test_a_harmful_request_id_is_replaced(lake: Lake, given: str) -> None:
    answer = lake.client.get(lake.path("namespaces"), headers={"x-request-id": given})
    assert answer.headers["x-request-id"] not in {given, ""}
    kept = lake.client.get(lake.path("namespaces"), headers={"x-request-id": "abc-1.2:3_4"})
    assert kept.headers["x-request-id"] == "abc-1.2:3_4"


def test_json_with_a_repeated_member_takes_the_last(lake: Lake) -> None:
    body = b'{"namespace": ["first"], "namespace": ["last"]}'
    assert lake.client.post(lake.path("namespaces"), body=body).json()["namespace"] == ["last"]
    assert json.loads(body)["namespace"] == ["last"]
