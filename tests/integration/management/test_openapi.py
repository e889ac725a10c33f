"""The document is complete, valid, the same as the committed one, and served to everybody."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import URLPattern, URLResolver, get_resolver
from jsonschema import Draft202012Validator

from lakewarden import asgi
from lakewarden.http.conventions import Cors
from lakewarden.http.openapi import as_yaml
from management import openapi_document
from tenants.models import Warehouse
from tests.integration.management.openapi import CheckedClient, check, operations, validator
from tests.servers.asgi_client import Answer, AsgiClient

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "management-api.yaml"
JSON, YAML = "/management/v1/openapi.json", "/management/v1/openapi.yaml"
NO_VIEWS = {"/management/v1/openapi.json", "/management/v1/openapi.yaml"}
ORIGIN = "https://console.example.org"


def _routes(patterns: list[Any], prefix: str = "/") -> Iterator[str]:
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from _routes(each.url_patterns, f"{prefix}{each.pattern}")
        elif isinstance(each, URLPattern):
            yield f"{prefix}{each.pattern}".replace("<str:", "{").replace("<", "{").replace(">", "}")


def test_every_route_is_documented() -> None:
    served = {route for route in _routes(get_resolver().url_patterns) if route.startswith("/management/v1/")}
    assert served - NO_VIEWS == set(openapi_document.document()["paths"])


def test_the_committed_document_is_current() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == as_yaml(openapi_document.document()), (
        "run `python -m scripts.write_reference`"
    )


def test_operations_have_an_id_a_tag_and_the_errors() -> None:
    found = operations()
    ids = [operation["operationId"] for _, _, operation in found]
    assert len(set(ids)) == len(ids) > 40
    for method, template, operation in found:
        assert len(operation["tags"]) == 1, (method, template)
        assert {"4XX", "5XX"} <= operation["responses"].keys(), (method, template)


def test_each_schema_is_a_json_schema_and_has_no_null() -> None:
    for name, schema in openapi_document.document()["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        validator(f"#/components/schemas/{name}").is_valid({})  # every reference leads somewhere


def test_members_are_kebab_case_and_only_what_is_always_there_is_required() -> None:
    warehouse = openapi_document.document()["components"]["schemas"]["Warehouse"]
    assert {"warehouse-id", "project-id", "storage-profile"} <= set(warehouse["required"])
    assert "updated-at" in warehouse["properties"]
    assert "updated-at" not in warehouse["required"]


def test_a_request_with_an_unknown_member_breaks_its_schema() -> None:
    body = validator("#/components/schemas/EndpointStatisticsRequest")
    assert body.is_valid({"warehouse": {"type": "all"}})
    assert not body.is_valid({"warehouse": {"type": "all"}, "warehous": 1})
    assert not body.is_valid({"warehouse": {"type": "some"}})


def test_the_document_is_served_to_everybody(client: AsgiClient) -> None:
    as_json, as_yaml = client.get(JSON), client.get(YAML)
    assert (as_json.headers["content-type"], as_yaml.headers["content-type"]) == (
        "application/json",
        "application/yaml",
    )
    assert as_json.json() == yaml.safe_load(as_yaml.body) == json.loads(json.dumps(openapi_document.document()))
    assert as_json.json()["openapi"].startswith("3.1")
    assert "public" in as_json.headers["cache-control"]
    assert client.get(JSON, headers={"if-none-match": as_json.headers["etag"]}).status == 304
    assert client.get(JSON, headers={"accept-encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert client.post(JSON).error() == (405, "MethodNotAllowedException")
    assert client.head(YAML).body == b""


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"project-id": "a"}),  # a required member is missing
        (200, {"project-id": 1, "project-name": "a"}),
        (201, {"project-id": "a", "project-name": "a"}),  # never answered by GET
        (404, {"error": {"message": "gone"}}),
    ],
)
def test_an_answer_that_breaks_the_document_is_noticed(status: int, body: dict[str, Any]) -> None:
    headers = {"x-request-id": "1", "content-type": "application/json", "vary": "", "cache-control": "private"}
    with pytest.raises(AssertionError):
        check("GET", "/management/v1/project", Answer(status, headers, json.dumps(body).encode()))


def test_answers_are_private_and_vary_on_who_asks(admin: AsgiClient, warehouse: Warehouse) -> None:
    for path in (
        "/management/v1/info",
        "/management/v1/nowhere",
        "/catalog/v1/config?warehouse=lake",
        f"/catalog/v1/{warehouse.id}/namespaces",
    ):
        for _ in range(2):  # the second is a hot one
            answer = admin.get(path)
            assert answer.headers["cache-control"] == "private"
            assert {"Authorization", "X-Project-Id"} <= set(answer.headers["vary"].split(", "))
    assert "cache-control" not in admin.get("/health").headers


def test_a_browser_of_a_configured_origin_may_call(admin: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "_cors", Cors([ORIGIN]))
    asked = {"origin": ORIGIN, "access-control-request-method": "POST"}
    for path in ("/management/v1/project", "/catalog/v1/config"):
        allowed = AsgiClient().call("OPTIONS", path, headers=asked)
        assert (allowed.status, allowed.body) == (204, b"")
        assert allowed.headers["access-control-allow-origin"] == ORIGIN
        assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
        assert AsgiClient().call("OPTIONS", path, headers={**asked, "origin": "https://evil.example"}).status >= 400
    answer = admin.get("/management/v1/info", headers={"origin": ORIGIN})
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "Origin" in answer.headers["vary"]
    refused = AsgiClient().get("/management/v1/info", headers={"origin": ORIGIN})
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, ORIGIN)


def test_without_origins_nobody_may_call_from_a_browser(admin: AsgiClient) -> None:
    answer = admin.get("/management/v1/info", headers={"origin": ORIGIN})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_tests_of_this_folder_check_every_answer(client: AsgiClient) -> None:
    assert isinstance(client.as_user("alice"), CheckedClient)
