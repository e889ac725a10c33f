"""The catalog on a real bucket: tables live there from their creation to their purge, and ones from elsewhere come in."""

import json

import pytest

from lakewarden import config
from tenants.models import Warehouse
from tests.contracts.storage.s3_warehouse import moved_to
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.registering import register
from tests.integration.tasks.purges import run, sql
from tests.servers.asgi_client import AsgiClient
from tests.servers.minio import MinioServer, minio

__all__ = ["minio"]


@pytest.fixture
def bucket(minio: MinioServer) -> str:
    return minio.new_bucket()


@pytest.fixture
def lake(minio: MinioServer, admin: AsgiClient, warehouse: Warehouse, bucket: str) -> Lake:
    moved = moved_to(minio, warehouse, bucket, minio.new_owner(bucket))
    found = Lake(admin, str(moved.id))
    assert found.create_namespace("sales").status == 200
    return found


def test_a_table_lives_in_the_bucket_until_its_purge(minio: MinioServer, lake: Lake, bucket: str) -> None:
    created = lake.create_table("orders")
    assert created.status == 200, created.json()
    location = created.json()["metadata"]["location"]
    assert location.startswith(f"s3://{bucket}/lake/")
    for color in ("red", "blue"):
        assert lake.commit("orders", set_properties(color=color)).status == 200
    keys = minio.keys_in(bucket)
    assert len(keys) == 3
    assert all(key.startswith(location.removeprefix(f"s3://{bucket}/")) for key in keys)
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    for (task,) in sql("select id from task where outcome is null and queue_name = 'tabular_purge'"):
        run(task)
    assert minio.keys_in(bucket) == []


def test_a_table_is_registered_from_its_metadata_file(minio: MinioServer, lake: Lake, bucket: str) -> None:
    metadata = lake.create_table("orders").json()["metadata-location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    assert register(lake, "again", metadata).status == 200
    assert lake.load("again")["metadata-location"] == metadata
    assert minio.keys_in(bucket) == [metadata.removeprefix(f"s3://{bucket}/")]


def test_a_file_that_cannot_be_registered_is_named(
    minio: MinioServer, lake: Lake, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 64 * 1024
    monkeypatch.setenv(f"{config.PREFIX}CATALOG__MAX_METADATA_BYTES", str(most))
    config.current.cache_clear()
    client = minio.client()
    client.put_object(Bucket=bucket, Key="lake/left/large.metadata.json", Body=b" " * (most + 1))
    client.put_object(Bucket=bucket, Key="lake/left/torn.metadata.json", Body=b'{"format-version": 2')
    client.put_object(Bucket=bucket, Key="beside/v1.metadata.json", Body=b"{}")
    expected = {
        "lake/left/none.metadata.json": "does not exist",
        "lake/left/large.metadata.json": f"larger than {most} bytes",
        "lake/left/torn.metadata.json": "not valid JSON",
        "beside/v1.metadata.json": "lake",
    }
    try:
        for key, words in expected.items():
            answer = register(lake, "left", f"s3://{bucket}/{key}")
            assert answer.status == 400, (key, answer.json())
            assert words in json.dumps(answer.json()), key
    finally:
        config.current.cache_clear()


def test_a_bucket_that_is_gone_is_named_and_nothing_is_created(minio: MinioServer, lake: Lake, bucket: str) -> None:
    minio.client().delete_bucket(Bucket=bucket)
    answer = lake.create_table("orders")
    assert answer.status in {400, 503}
    assert "the bucket does not exist" in answer.json()["error"]["message"]
    assert lake.client.get(lake.table("orders")).status == 404
