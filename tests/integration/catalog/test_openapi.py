"""The catalog's OpenAPI document is complete, valid, the same as the committed one, and served to everybody."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from catalog.api.generic_tables.urls import ROUTES as GENERIC_ROUTES
from catalog.api.openapi import components, document, operations, schema_types
from catalog.api.urls import CAPABILITIES, SIGNING_CAPABILITIES
from lakewarden.http.openapi import IncompleteDocument, as_yaml
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.openapi import CheckedClient, check
from tests.openapi.catalog import ours
from tests.servers.asgi_client import Answer, AsgiClient

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "catalog-api.yaml"
JSON, YAML = "/catalog/v1/openapi.json", "/catalog/v1/openapi.yaml"
ADDRESS = {"x-request-id": "1", "content-type": "application/json"}


def test_the_committed_document_is_current() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == as_yaml(ours().document), "run `python -m scripts.write_reference`"


def test_every_capability_is_documented_and_nothing_else() -> None:
    documented = {f"{method} {template}" for method, template, _ in ours().operations()}
    beside = [capability for route in GENERIC_ROUTES for capability in route.capabilities]
    assert documented == {"GET /v1/config", "POST /v1/oauth/tokens", *CAPABILITIES, *SIGNING_CAPABILITIES, *beside}


def test_operations_have_an_id_of_their_own_a_summary_and_the_errors() -> None:
    found = ours().operations()
    assert len({operation["operationId"] for _, _, operation in found}) == len(found) > 25
    for method, template, operation in found:
        assert operation["summary"], (method, template)
        assert template == "/v1/oauth/tokens" or {"4XX", "5XX"} <= operation["responses"].keys(), (method, template)


def test_each_schema_is_valid_and_every_reference_leads_somewhere() -> None:
    for name, schema in ours().document["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        ours().validator(f"#/components/schemas/{name}").is_valid({})


def test_an_update_that_is_not_described_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(schema_types.TABLE_UPDATES, "add-spec")
    with pytest.raises(IncompleteDocument, match="table update add-spec"):
        components.components()


def test_a_route_that_is_not_described_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(operations.OPERATIONS, "GET /v1/config")
    with pytest.raises(IncompleteDocument, match="GET /v1/config"):
        document.document.__wrapped__()


def test_the_document_is_served_to_everybody(client: AsgiClient) -> None:
    as_json, as_text = client.get(JSON), client.get(YAML)
    assert (as_json.headers["content-type"], as_text.headers["content-type"]) == (
        "application/json",
        "application/yaml",
    )
    assert as_json.json() == yaml.safe_load(as_text.body) == json.loads(json.dumps(ours().document))
    assert client.get(JSON, headers={"if-none-match": as_json.headers["etag"]}).status == 304
    assert client.post(JSON).error() == (405, "MethodNotAllowedException")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"namespaces": [["a"]]}),  # a required member is missing
        (200, {"namespaces": ["a"], "next-page-token": None}),
        (201, {"namespaces": [], "next-page-token": None}),  # never answered by GET
        (404, {"error": {"message": "gone", "type": "NoSuchNamespaceException"}}),
    ],
)
def test_an_answer_that_breaks_the_document_is_noticed(status: int, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    answer = Answer(status, {**ADDRESS, "content-length": str(len(content))}, content)
    with pytest.raises(AssertionError):
        check("GET", "/v1/p/namespaces", answer)


def test_a_parameter_that_is_not_documented_is_noticed(lake: Lake) -> None:
    with pytest.raises(AssertionError, match="returnEverything"):
        lake.client.get(f"/catalog/v1/{lake.warehouse_id}/namespaces?returnEverything=true")


def test_the_tests_of_this_folder_check_every_answer(client: AsgiClient) -> None:
    assert isinstance(client.as_user("alice"), CheckedClient)
