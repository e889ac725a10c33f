"""Requests that schemathesis generates from the OpenAPI document: no answer is a 5xx, and the document allows each one."""

from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Api:
    """The server, what it should keep to, and an authorized way to it."""

    uri: str
    document: BaseSchema
    http: requests.Session

    def cases(self, capability: str, **options: Any) -> SearchStrategy[Case[Any]]:
        """Cases of an operation that is named as in the config answer."""
        return operation(self.document, capability).as_strategy(**options)

    def hold(self, cases: SearchStrategy[Case[Any]]) -> None:
        """Send `EXAMPLES` cases, the same in every run, and check each answer against the document."""

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            phases=[Phase.generate],  # a failure is reported as it was found: shrinking it takes minutes
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def send(case: Case[Any]) -> None:
            _keep_keys_apart(case)
            case.call_and_validate(self.uri, self.http, checks=CHECKS, timeout=20)

        send()


def _keep_keys_apart(case: Case[Any]) -> None:
    """Removes an idempotency key that was generated twice: the second request would only be answered with that error."""
    key = str(case.headers.get("Idempotency-Key"))
    if key in _used_keys:
        del case.headers["Idempotency-Key"]
    elif key != "None":
        _used_keys.add(key)


@pytest.fixture(scope="module")
def api(server: DevServer, token: str) -> Iterator[Api]:
    with requests.Session() as session:
        session.headers["authorization"] = f"Bearer {token}"
        yield Api(server.info.catalog_uri, fitted(server.info.warehouse.id), session)


@pytest.fixture
def known(server: DevServer, catalog: RestCatalog, namespace: str) -> dict[str, str]:
    """Path variables of existing objects: a namespace with a table `t` and a view `v`."""
    catalog.create_table((namespace, "t"), SCHEMA)
    sql = SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")
    version = ViewVersion(
        version_id=1, schema_id=0, timestamp_ms=1, summary={}, representations=[sql], default_namespace=[namespace]
    )
    catalog.create_view((namespace, "v"), SCHEMA, version)
    return {"prefix": server.info.warehouse.id, "namespace": namespace, "table": "t", "view": "v"}


def test_the_operations_tried_are_those_that_the_server_names(server: DevServer, api: Api) -> None:
    told = api.http.get(f"{api.uri}/v1/config", params={"warehouse": server.info.warehouse.name}).json()
    assert told["endpoints"] == CAPABILITIES


@pytest.mark.parametrize("mode", MODES, ids=["valid", "invalid"])
@pytest.mark.parametrize("capability", ["GET /v1/config", *CAPABILITIES])
def test_an_answer_about_anything_is_one_of_the_document(api: Api, capability: str, mode: GenerationMode) -> None:
    """Mostly for objects that do not exist, because the names are generated too."""
    cases = api.cases(capability, generation_mode=mode)
    api.hold(cases)


@pytest.mark.parametrize("mode", MODES, ids=["valid", "invalid"])
@pytest.mark.parametrize("capability", [each for each in CAPABILITIES if "{namespace}" in each])
def test_an_answer_about_what_is_there_is_one_of_the_document(
    api: Api, known: dict[str, str], capability: str, mode: GenerationMode
) -> None:
    path = {name: value for name, value in known.items() if f"{{{name}}}" in capability}
    cases = api.cases(capability, generation_mode=mode, path_parameters=path)
    api.hold(cases)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_rename_of_what_is_there_is_answered_by_the_document(api: Api, known: dict[str, str], kind: str) -> None:
    source = {"namespace": [known["namespace"]], "name": known[kind]}
    cases = api.cases(f"POST /v1/{{prefix}}/{kind}s/rename")

    def from_there(case: Case[Any]) -> Case[Any]:
        body: Any = case.body
        destination = {**body["destination"], "namespace": source["namespace"]}
        return aimed(case, {**body, "source": source, "destination": destination})

    api.hold(cases.map(from_there))


def test_a_commit_to_tables_that_are_there_is_answered_by_the_document(api: Api, known: dict[str, str]) -> None:
    identifier = {"namespace": [known["namespace"]], "name": known["table"]}
    cases = api.cases("POST /v1/{prefix}/transactions/commit")

    def at_the_table(case: Case[Any]) -> Case[Any]:
        body: Any = case.body
        changes = [{**change, "identifier": identifier} for change in body["table-changes"][:1]]
        return aimed(case, {"table-changes": changes})

    api.hold(cases.map(at_the_table))


def aimed(case: Case[Any], body: Any) -> Case[Any]:
    case.body = body
    return case
