"""A warehouse on a bucket: the pipeline has no key of its own, and gets one for each table from the catalog."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from standalone.provisioning import ENGINE_PRIVILEGES, ManagementClient
from standalone.s3.store import S3Store
from tests.pipeline.durable_log import change
from tests.pipeline.flushing import Stage, following
from tests.servers.lakewarden_server import DevServer
from tests.servers.minio import MinioServer, minio
from tests.servers.s3_server import REGION

__all__ = ["minio"]


@pytest.fixture
def in_bucket(server: DevServer, spark: SparkSession, minio: MinioServer) -> Iterator[Stage]:
    info = server.info
    bucket = minio.new_bucket()
    store = S3Store(minio.endpoint, bucket, "wh", REGION, minio.new_owner(bucket), issues_keys=True)
    management = ManagementClient(info.management_uri, server.token(info.admin))
    warehouse = management.ensure_s3_warehouse(bucket, store)
    application = f"oidc~{info.engine.client_id}"
    management.grant(warehouse, application=application, name=info.engine.client_id, privileges=ENGINE_PRIVILEGES)
    with following(server, spark, warehouse) as follower, Stage.open(follower, namespace="shop") as stage:
        yield stage


def test_events_are_in_the_bucket_once_though_the_pipeline_has_no_key_to_it(in_bucket: Stage) -> None:
    assert "AWS_ACCESS_KEY_ID" not in os.environ
    stage = in_bucket
    stage.policy("both")
    stage.log.append([change("t", "a", 1, {"v": 1}), change("t", "b", 2, {"v": "no number"})])
    first = stage.log.append([change("t", "c", 3, {"v": 3})])
    stage.flush()
    stage.follower.stop()
    stage.log.forget_flushes(after=first - 1)
    stage.log.append([change("t", "a", 4, {"v": 4}, operation="UPDATE"), change("t", "c", 5, operation="DELETE")])
    stage.follower.start()
    stage.flush()
    assert [row["_cdc_sequence"] for row in stage.rows("t")] == [1, 2, 3, 4, 5]
    assert stage.mirror("t_current") == {"a": {"v": 4}, "b": {"v": None}}
    assert [row["_cdc_sequence"] for row in stage.rows("t__rejected")] == [2]
    assert all(task.file.file_path.startswith("s3://") for task in stage.table("t").scan().plan_files())


def test_files_of_small_tables_are_put_there_with_each_tables_own_keys(in_bucket: Stage) -> None:
    stage = in_bucket
    names = [f"t{number}" for number in range(12)]
    for sequence in (1, 2):
        stage.log.append([change(name, "a", sequence, {"v": sequence}) for name in names])
        stage.flush()
    for name in names:
        assert [row["_cdc_sequence"] for row in stage.rows(name)] == [1, 2]
        paths = [task.file.file_path for task in stage.table(name).scan().plan_files()]
        # those that Spark writes have the number of its task in their names
        assert all(path.startswith("s3://") and path.rpartition("/")[2].count("-") == 5 for path in paths)


def test_a_bucket_that_was_gone_and_is_back_has_cost_nothing_but_time(in_bucket: Stage, minio: MinioServer) -> None:
    stage = in_bucket
    stage.log.append([change("t", "a", 1, {"v": 1})])
    stage.flush()
    minio.stop()
    try:
        stage.log.append([change("t", "a", 2, {"v": 2})])
        stage.await_work()
    finally:
        minio.start()
    stage.flush()
    assert [row["_cdc_sequence"] for row in stage.rows("t")] == [1, 2]
