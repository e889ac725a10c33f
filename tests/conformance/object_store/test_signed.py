"""Spark on a bucket without any key: the catalog signs each of its requests to the store."""

from pyiceberg.catalog.rest import RestCatalog

from tests.conformance.object_store.buckets import Bucket
from tests.conformance.sql import Sql


def test_spark_writes_reads_and_rewrites(
    by_signing_spark: Sql, catalog: RestCatalog, namespace: str, bucket: Bucket
) -> None:
    by_signing_spark("CREATE TABLE {ns}.t (id BIGINT, place STRING) USING iceberg PARTITIONED BY (place)")
    by_signing_spark("INSERT INTO {ns}.t VALUES (1, 'a b'), (2, 'c+d'), (3, 'é/%2F')")
    by_signing_spark("INSERT INTO {ns}.t SELECT id + 3, place FROM {ns}.t")
    by_signing_spark("UPDATE {ns}.t SET place = 'z' WHERE id = 1")
    assert by_signing_spark("SELECT id, place FROM {ns}.t ORDER BY id") == [
        (1, "z"),
        (2, "c+d"),
        (3, "é/%2F"),
        (4, "a b"),
        (5, "c+d"),
        (6, "é/%2F"),
    ]
    by_signing_spark(
        "CALL signed.system.rewrite_data_files(table => '{namespace}.t', options => map('rewrite-all','true'))"
    )
    # files that no snapshot needs are removed in requests of many keys
    by_signing_spark(
        "CALL signed.system.expire_snapshots(table => '{namespace}.t', older_than => TIMESTAMP '2100-01-01')"
    )
    assert by_signing_spark("SELECT count(*) FROM {ns}.t") == [(6,)]
    location = catalog.load_table((namespace, "t")).location().removeprefix(f"s3://{bucket.name}/")
    data = [key for key in bucket.found() if key.startswith(f"{location}/data/")]
    assert len(data) == by_signing_spark("SELECT count(*) FROM {ns}.t.files")[0][0]
