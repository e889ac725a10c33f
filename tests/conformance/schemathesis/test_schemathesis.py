"""Requests that schemathesis makes up from the OpenAPI document: no answer is a 5xx, each is one that the document knows."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
from schemathesis import BaseSchema, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from catalog.api.urls import CAPABILITIES
from tests.conformance.schemathesis.document import fitted, operation
from tests.servers.lakewarden_server import DevServer

EXAMPLES = 40
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "name", StringType(), required=False))
_used_keys: set[str] = set()
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def document(server: DevServer) -> BaseSchema:
    return fitted(server.info.warehouse.id)


@pytest.fixture(scope="module")
def http(token: str) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["authorization"] = f"Bearer {token}"
        yield session


@pytest.fixture
def known(server: DevServer, catalog: RestCatalog, namespace: str) -> dict[str, str]:
    """Path variables that are there: a namespace with a table `t` and a view `v`."""
    catalog.create_table((namespace, "t"), SCHEMA)
    sql = SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")
    version = ViewVersion(
        version_id=1, schema_id=0, timestamp_ms=1, summary={}, representations=[sql], default_namespace=[namespace]
    )
    catalog.create_view((namespace, "v"), SCHEMA, version)
    return {"prefix": server.info.warehouse.id, "namespace": namespace, "table": "t", "view": "v"}


def test_the_operations_tried_are_those_that_the_server_names(server: DevServer, http: requests.Session) -> None:
    told = http.get(f"{server.info.catalog_uri}/v1/config", params={"warehouse": server.info.warehouse.name}).json()
    assert told["endpoints"] == CAPABILITIES


@pytest.mark.parametrize("mode", MODES, ids=["valid", "invalid"])
@pytest.mark.parametrize("capability", ["GET /v1/config", *CAPABILITIES])
def test_an_answer_about_anything_is_one_of_the_document(
    server: DevServer, document: BaseSchema, http: requests.Session, capability: str, mode: GenerationMode
) -> None:
    """Mostly about what does not exist: the names are made up, too."""
    cases = operation(document, capability).as_strategy(generation_mode=mode)
    hold(cases, server, http)


@pytest.mark.parametrize("mode", MODES, ids=["valid", "invalid"])
@pytest.mark.parametrize("capability", [each for each in CAPABILITIES if "{namespace}" in each])
def test_an_answer_about_what_is_there_is_one_of_the_document(
    server: DevServer,
    document: BaseSchema,
    http: requests.Session,
    known: dict[str, str],
    capability: str,
    mode: GenerationMode,
) -> None:
    path = {name: value for name, value in known.items() if f"{{{name}}}" in capability}
    cases = operation(document, capability).as_strategy(generation_mode=mode, path_parameters=path)
    hold(cases, server, http)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_rename_of_what_is_there_is_answered_by_the_document(
    server: DevServer, document: BaseSchema, http: requests.Session, known: dict[str, str], kind: str
) -> None:
    source = {"namespace": [known["namespace"]], "name": known[kind]}
    cases = operation(document, f"POST /v1/{{prefix}}/{kind}s/rename").as_strategy()

    def from_there(case: Case) -> Case:
        destination = {**case.body["destination"], "namespace": source["namespace"]}
        return aimed(case, {**case.body, "source": source, "destination": destination})

    hold(cases.map(from_there), server, http)


def test_a_commit_to_tables_that_are_there_is_answered_by_the_document(
    server: DevServer, document: BaseSchema, http: requests.Session, known: dict[str, str]
) -> None:
    identifier = {"namespace": [known["namespace"]], "name": known["table"]}
    cases = operation(document, "POST /v1/{prefix}/transactions/commit").as_strategy()

    def at_the_table(case: Case) -> Case:
        changes = [{**change, "identifier": identifier} for change in case.body["table-changes"][:1]]
        return aimed(case, {"table-changes": changes})

    hold(cases.map(at_the_table), server, http)


def aimed(case: Case, body: Any) -> Case:
    case.body = body
    return case


def hold(cases: SearchStrategy[Case], server: DevServer, http: requests.Session) -> None:
    """Send `EXAMPLES` cases, the same in every run, and hold each answer against the document."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        phases=[Phase.generate],  # a failure is shown as it was found: making it small takes minutes
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def send(case: Case) -> None:
        if "Idempotency-Key" in case.headers and str(case.headers["Idempotency-Key"]) in _used_keys:
            del case.headers["Idempotency-Key"]  # made up twice: the second request would only be told so
        _used_keys.add(str(case.headers.get("Idempotency-Key")))
        case.call_and_validate(server.info.catalog_uri, http, checks=CHECKS, timeout=20)

    send()
