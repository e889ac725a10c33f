"""For the tests of engines on a bucket: none has a key of its own, all receive credentials with each table.

`bucket` is a warehouse on a real MinIO, whose engines call it `lake`; `namespace` is a namespace of the test's own.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from pipeline.spark import catalogs
from tests.conformance.object_store.buckets import WAREHOUSE, Bucket
from tests.conformance.sql import Sql
from tests.servers import duckdb
from tests.servers.lakewarden_server import DevServer
from tests.servers.minio import MinioServer, minio
from tests.servers.s3_server import REGION
from tests.servers.trino import TrinoServer
from tests.servers.trino import start as start_trino

__all__ = ["minio"]

ENGINE_PRIVILEGES = ("create", "modify")
_numbers = count(1)


@pytest.fixture(scope="session")
def bucket(minio: MinioServer, server: DevServer, manage: Callable[..., Any]) -> Bucket:
    name = minio.new_bucket()
    owner = minio.new_owner(name)
    created = manage(
        "POST",
        "/management/v1/warehouse",
        {
            "warehouse-name": WAREHOUSE,
            "storage-profile": {
                "type": "s3",
                "bucket": name,
                "key-prefix": "wh",
                "region": REGION,
                "endpoint": minio.endpoint,
                "flavor": "s3-compat",
                "path-style-access": True,
                "sts-enabled": True,
                "push-s3-delete-disabled": False,
            },
            "storage-credential": {
                "type": "s3",
                "credential-type": "access-key",
                "access-key-id": owner.access_key_id,
                "secret-access-key": owner.secret_access_key,
            },
        },
    )
    warehouse = created["warehouse-id"]
    application = f"oidc~{server.info.engine.client_id}"
    writes = [{"privilege": each, "principal": {"user": application}} for each in ENGINE_PRIVILEGES]
    manage("POST", f"/management/v1/warehouse/{warehouse}/grants", {"writes": writes, "deletes": []})
    return Bucket(minio, name, warehouse)


@pytest.fixture(scope="session")
def bucket_catalog(rest_catalog: catalogs.RestCatalog, bucket: Bucket) -> catalogs.RestCatalog:
    return replace(rest_catalog, warehouse=WAREHOUSE)


@pytest.fixture(scope="session")
def catalog(bucket_catalog: catalogs.RestCatalog) -> Iterator[RestCatalog]:
    client = RestCatalog(bucket_catalog.name, **bucket_catalog.properties())
    yield client
    client.close()


@pytest.fixture
def namespace(catalog: RestCatalog) -> str:
    """An empty namespace."""
    name = f"b{next(_numbers)}"
    catalog.create_namespace(name)
    return name


@pytest.fixture(scope="session")
def trino_on_bucket(trino_properties: dict[str, str], bucket: Bucket) -> Iterator[TrinoServer]:
    """It has the address of the store in its own settings, and keys only from the catalog."""
    # it refuses to start with this procedure and vended credentials together
    dropped = ("fs.", "local.", "iceberg.register-table-procedure")
    own = {name: value for name, value in trino_properties.items() if not name.startswith(dropped)}
    properties = own | {
        "iceberg.rest-catalog.warehouse": WAREHOUSE,
        "iceberg.rest-catalog.vended-credentials-enabled": "true",
        "fs.native-s3.enabled": "true",
        "s3.endpoint": bucket.server.endpoint,
        "s3.region": REGION,
        "s3.path-style-access": "true",
    }
    with start_trino(properties) as running:
        yield running


@pytest.fixture
def by_trino(trino_on_bucket: TrinoServer, namespace: str) -> Sql:
    return Sql(trino_on_bucket.run, namespace)


@pytest.fixture
def by_duckdb(bucket_catalog: catalogs.RestCatalog, namespace: str) -> Iterator[Sql]:
    with duckdb.connected(bucket_catalog) as connection:
        yield Sql(lambda statement: connection.execute(statement).fetchall(), namespace)


@pytest.fixture
def by_spark(spark: SparkSession, bucket: Bucket, namespace: str) -> Sql:
    return _sql(spark, WAREHOUSE, namespace)


@pytest.fixture
def by_signing_spark(spark: SparkSession, bucket: Bucket, namespace: str) -> Sql:
    return _sql(spark, "signed", namespace)


def _sql(spark: SparkSession, catalog: str, namespace: str) -> Sql:
    def run(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(statement.replace("lake.", f"{catalog}.")).collect()]

    return Sql(run, namespace)
