"""A Trino of many users, whose rights Open Policy Agent asks of Lakewarden; `anna` and `ben` are people without any."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

from lakewarden.ids import new_id
from tests.conformance.sql import Sql
from tests.servers import opa as opa_server
from tests.servers import trino as trino_server
from tests.servers.lakewarden_server import DevServer
from tests.servers.opa import OpaServer
from tests.servers.trino import TrinoServer

Manage = Callable[..., Any]


@pytest.fixture(scope="session")
def opa(server: DevServer) -> Iterator[OpaServer]:
    """Open Policy Agent with the policies, as the administrator; Trino's catalog `lake` is the warehouse `demo`."""
    info = server.info
    settings = {
        "LAKEWARDEN_URL": info.catalog_uri.removesuffix("/catalog"),
        "LAKEWARDEN_TOKEN_ENDPOINT": info.token_endpoint,
        "LAKEWARDEN_CLIENT_ID": info.admin.client_id,
        "LAKEWARDEN_CLIENT_SECRET": info.admin.client_secret,
        "LAKEWARDEN_SCOPE": "catalog",
        "TRINO_CATALOGS": json.dumps({"lake": info.warehouse.name}),
        "TRINO_ADMINISTRATORS": '["root"]',
        "TRINO_NESTED_NAMESPACES": "true",
    }
    with opa_server.start(settings) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(trino_properties: dict[str, str], opa: OpaServer) -> Iterator[TrinoServer]:
    access_control = {
        "access-control.name": "opa",
        "opa.policy.uri": f"{opa.url}/v1/data/trino/allow",
        "opa.policy.batched-uri": f"{opa.url}/v1/data/trino/batch",
    }
    with trino_server.start(trino_properties, access_control=access_control) as running:
        yield running


@pytest.fixture
def anna(manage: Manage) -> str:
    return person(manage, "anna")


@pytest.fixture
def ben(manage: Manage) -> str:
    return person(manage, "ben")


def person(manage: Manage, name: str) -> str:
    """Somebody new; their name in Trino."""
    name = f"{name}-{new_id().hex[-8:]}"
    manage("POST", "/management/v1/user", {"id": f"oidc~{name}", "name": name, "user-type": "human"})
    return name


@pytest.fixture
def grant(manage: Manage, server: DevServer, catalog: RestCatalog, namespace: str) -> Callable[..., None]:
    """Grant privileges on a table of the test's namespace, or on the namespace itself."""
    warehouse = server.info.warehouse.id

    def change(user: str, *privileges: str, table: str | None = None, how: str = "writes") -> None:
        if table is None:
            found = manage("GET", f"/catalog/v1/{warehouse}/namespaces/{namespace}?returnUuid=true")
            identifier = found["namespace-uuid"]
        else:
            identifier = str(catalog.load_table((namespace, table)).metadata.table_uuid)
        place = f"/management/v1/warehouse/{warehouse}/{'table' if table else 'namespace'}/{identifier}/grants"
        entries = [{"privilege": each, "principal": {"user": f"oidc~{user}"}} for each in privileges]
        manage("POST", place, {how: entries})

    return change


@pytest.fixture
def by(guarded: TrinoServer, namespace: str) -> Callable[[str], Sql]:
    """Statements for Trino by a user."""
    return lambda user: Sql(lambda statement: guarded.run(statement, user=user), namespace)
