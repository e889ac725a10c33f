"""PyIceberg without any key writes and reads a table on S3: each of its requests to the store is signed by the catalog."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.utils.concurrent import ExecutorFactory

from pipeline.spark import catalogs
from tests.servers.lakewarden_server import DevServer
from tests.servers.minio import minio
from tests.servers.s3_server import REGION, S3Server

__all__ = ["minio"]

ROWS = pa.table({"id": [1, 2, 3], "place": ["a b", "c+d", "é/%2F"]})


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Several threads of PyIceberg now and then send requests before their signer is registered."""
    with ThreadPoolExecutor(1) as one:
        monkeypatch.setattr(ExecutorFactory, "get_or_create", lambda: one)
        yield


@pytest.fixture
def bucket(minio: S3Server) -> str:
    return minio.new_bucket()


@pytest.fixture
def signing(
    server: DevServer, rest_catalog: catalogs.RestCatalog, manage: Callable[..., Any], minio: S3Server, bucket: str
) -> Iterator[RestCatalog]:
    """A client of a warehouse that vends no keys; it asks for none."""
    name = f"signed-{uuid4().hex[:8]}"
    made = manage(
        "POST",
        "/management/v1/warehouse",
        {
            "warehouse-name": name,
            "storage-profile": {
                "type": "s3",
                "bucket": bucket,
                "key-prefix": "wh",
                "region": REGION,
                "endpoint": minio.endpoint,
                "path-style-access": True,
                "sts-enabled": False,
                "flavor": "s3-compat",
            },
            "storage-credential": {
                "type": "s3",
                "credential-type": "access-key",
                "access-key-id": minio.root.access_key_id,
                "secret-access-key": minio.root.secret_access_key,
            },
            "delete-profile": {"type": "hard"},
        },
    )
    path = f"/management/v1/warehouse/{made['id']}"
    engine = {"user": f"oidc~{server.info.engine.client_id}"}
    manage(
        "POST",
        f"{path}/grants",
        {"writes": [{"privilege": each, "principal": engine} for each in ("create", "modify")]},
    )
    properties = {**rest_catalog.properties(), "warehouse": name}
    client = RestCatalog(name, **properties, **{"header.X-Iceberg-Access-Delegation": "remote-signing"})
    yield client
    client.close()


def test_rows_are_written_and_read_by_signatures_alone(signing: RestCatalog, minio: S3Server, bucket: str) -> None:
    signing.create_namespace("sales")
    table = signing.create_table("sales.orders", ROWS.schema)
    assert table.io.properties["s3.remote-signing-enabled"] == "true"
    assert not {"s3.secret-access-key", "s3.access-key-id", "s3.session-token"} & table.io.properties.keys()
    table.append(ROWS)
    table.append(ROWS)
    read = signing.load_table("sales.orders").scan().to_arrow()
    assert sorted(read["place"].to_pylist()) == sorted(2 * ROWS["place"].to_pylist())
    location = table.location().removeprefix(f"s3://{bucket}/")
    assert [key for key in minio.keys_in(bucket, location) if key.endswith(".parquet")]
