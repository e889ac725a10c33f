"""For the conformance lane: one real server, and each engine started once against it.

`server` is `lakewarden dev`; `catalog` is PyIceberg's client, `spark` a session and `trino` a coordinator on its warehouse.
`namespace` is a namespace of the test's own, known to all engines by one plain name.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import urllib3
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from pipeline.spark import catalogs
from pipeline.spark.jars import CATALOG_JARS
from pipeline.spark.session import session
from tests.conformance.object_store.buckets import WAREHOUSE
from tests.conformance.sql import Sql
from tests.servers.lakewarden_server import DevServer, start_dev
from tests.servers.trino import TrinoServer
from tests.servers.trino import start as start_trino

_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    # pyspark leaves the socket of each collected result to the garbage collector
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="session")
def server() -> Iterator[DevServer]:
    with start_dev() as running:
        yield running


@pytest.fixture(scope="session")
def rest_catalog(server: DevServer) -> catalogs.RestCatalog:
    """The settings with which an engine connects to the warehouse; its name in SQL is `lake`."""
    engine = server.info.engine
    return catalogs.RestCatalog(
        name="lake",
        uri=server.info.catalog_uri,
        warehouse=server.info.warehouse.name,
        credential=f"{engine.client_id}:{engine.client_secret}",
        oauth2_server_uri=server.info.token_endpoint,
        scope=engine.scope,
    )


@pytest.fixture(scope="session")
def token(server: DevServer) -> str:
    """An access token of the application `engine`, requested with client credentials."""
    return server.token(server.info.engine)


@pytest.fixture(scope="session")
def manage(server: DevServer) -> Callable[..., Any]:
    """A request to the server as the administrator; its answer, parsed."""
    info = server.info
    headers = {"authorization": f"Bearer {server.token(info.admin)}"}

    def ask(method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        answer = urllib3.request(
            method, f"{info.catalog_uri.removesuffix('/catalog')}{path}", json=body, headers=headers, timeout=30.0
        )
        assert answer.status < 300, answer.data
        return json.loads(answer.data or b"null")

    return ask


@pytest.fixture(scope="session")
def catalog(rest_catalog: catalogs.RestCatalog) -> Iterator[RestCatalog]:
    client = RestCatalog(rest_catalog.name, **rest_catalog.properties())
    yield client
    client.close()


@pytest.fixture(scope="session")
def spark(rest_catalog: catalogs.RestCatalog) -> Iterator[SparkSession]:
    """With catalogs of the warehouse `bucket`, too, for the tests in `object_store`: there is one session in a process.

    `bucket` asks for credentials, `signed` for a signer.
    """

    def in_bucket(name: str, delegation: str) -> catalogs.RestCatalog:
        header = {"header.X-Iceberg-Access-Delegation": delegation}
        return replace(rest_catalog, name=name, warehouse=WAREHOUSE, extra=header)

    all_catalogs = [rest_catalog, in_bucket(WAREHOUSE, "vended-credentials"), in_bucket("signed", "remote-signing")]
    jars = (*CATALOG_JARS, "iceberg-aws-bundle")
    with session(all_catalogs, app_name="conformance", master="local[2]", jar_names=jars) as running:
        yield running


@pytest.fixture(scope="session")
def trino_properties(rest_catalog: catalogs.RestCatalog) -> dict[str, str]:
    """Trino's catalog on the warehouse, with the identity of `engine`."""
    return {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": rest_catalog.uri,
        "iceberg.rest-catalog.warehouse": rest_catalog.warehouse,
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.oauth2.credential": rest_catalog.credential,
        "iceberg.rest-catalog.oauth2.server-uri": rest_catalog.oauth2_server_uri,
        "iceberg.rest-catalog.oauth2.scope": rest_catalog.scope,
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        # for `lake`'s storage, a local directory; Trino takes the root away from what is below it
        "fs.native-local.enabled": "true",
        "local.location": "/",
        # for tests that use procedures on what was written a moment ago
        "iceberg.expire-snapshots.min-retention": "0s",
        "iceberg.remove-orphan-files.min-retention": "0s",
        "iceberg.register-table-procedure.enabled": "true",
    }


@pytest.fixture(scope="session")
def trino(trino_properties: dict[str, str]) -> Iterator[TrinoServer]:
    with start_trino(trino_properties) as running:
        yield running


@pytest.fixture
def namespace(catalog: RestCatalog) -> str:
    """An empty namespace."""
    name = f"ns{next(_numbers)}"
    catalog.create_namespace(name)
    return name


@pytest.fixture
def by_spark(spark: SparkSession, namespace: str) -> Sql:
    """Statements for Spark; the rows of each are collected as plain tuples."""
    return Sql(lambda statement: [tuple(row) for row in spark.sql(statement).collect()], namespace)


@pytest.fixture
def by_trino(trino: TrinoServer, namespace: str) -> Sql:
    """Statements for Trino."""
    return Sql(trino.run, namespace)
