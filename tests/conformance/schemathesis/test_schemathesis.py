"""Requests that schemathesis makes up from the OpenAPI document: no answer is a 5xx, each is one that the document knows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from catalog.api.urls import CAPABILITIES
from tests.conformance.schemathesis.document import fitted, operation
from tests.servers.lakewarden_server import DevServer

EXAMPLES = 60
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "name", StringType(), required=False))


@pytest.fixture
def schema(server: DevServer, catalog: RestCatalog, namespace: str) -> BaseSchema:
    """The document, with a table `t` and a view `v` in the test's namespace to be found."""
    catalog.create_table((namespace, "t"), SCHEMA)
    sql = SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")
    version = ViewVersion(
        version_id=1, schema_id=0, timestamp_ms=1, summary={}, representations=[sql], default_namespace=[namespace]
    )
    catalog.create_view((namespace, "v"), SCHEMA, version)
    known = {"prefix": server.info.warehouse.id, "namespace": namespace, "table": "t", "view": "v"}
    return fitted(server.info.catalog_uri, known)


@pytest.fixture(scope="module")
def http(token: str) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["authorization"] = f"Bearer {token}"
        yield session


def test_the_operations_tried_are_those_that_the_server_names(server: DevServer, http: requests.Session) -> None:
    told = http.get(f"{server.info.catalog_uri}/v1/config", params={"warehouse": server.info.warehouse.name}).json()
    assert told["endpoints"] == CAPABILITIES


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("capability", ["GET /v1/config", *CAPABILITIES])
def test_every_answer_is_one_of_the_document(
    server: DevServer, schema: BaseSchema, http: requests.Session, capability: str, mode: GenerationMode
) -> None:
    tried = operation(schema, capability)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=tried.as_strategy(generation_mode=mode))
    def run(case: Case) -> None:
        case.call_and_validate(server.info.catalog_uri, http, checks=CHECKS, timeout=20)

    run()
