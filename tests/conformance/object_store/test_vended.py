"""Engines on a bucket with vended credentials only: what one writes, the others read."""

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from tests.conformance.object_store.buckets import Bucket
from tests.conformance.sql import Sql

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})


@pytest.fixture
def table(catalog: RestCatalog, namespace: str) -> Table:
    """With two rows that PyIceberg has written."""
    made: Table = catalog.create_table((namespace, "t"), ROWS.schema)
    made.append(ROWS)
    return made


def test_pyiceberg_writes_and_reads(catalog: RestCatalog, table: Table, namespace: str, bucket: Bucket) -> None:
    table.append(pa.table({"id": pa.array([3], pa.int64()), "name": ["c"]}))
    table.delete("id = 1")
    loaded = catalog.load_table((namespace, "t"))
    assert sorted(loaded.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 2, "name": "b"},
        {"id": 3, "name": "c"},
    ]
    place = loaded.location().removeprefix(f"s3://{bucket.name}/")
    assert any(key.startswith(f"{place}/data/") for key in bucket.found())
    assert loaded.io.properties["s3.session-token"]
    catalog.drop_table((namespace, "t"))


@pytest.mark.usefixtures("table")
def test_trino_writes_and_reads(by_trino: Sql, catalog: RestCatalog, namespace: str) -> None:
    assert by_trino("SELECT id, name FROM {ns}.t ORDER BY id") == [(1, "a"), (2, "b")]
    by_trino("INSERT INTO {ns}.t VALUES (3, 'c')")
    by_trino("UPDATE {ns}.t SET name = 'z' WHERE id = 1")
    by_trino("CREATE TABLE {ns}.copied AS SELECT * FROM {ns}.t")
    assert by_trino("SELECT id, name FROM {ns}.copied ORDER BY id") == [(1, "z"), (2, "b"), (3, "c")]
    assert catalog.load_table((namespace, "copied")).scan().to_arrow().num_rows == 3
    by_trino("DROP TABLE {ns}.copied")


@pytest.mark.usefixtures("table")
def test_duckdb_reads(by_duckdb: Sql) -> None:
    assert by_duckdb("SELECT id, name FROM {ns}.t ORDER BY id") == [(1, "a"), (2, "b")]
    assert by_duckdb("SELECT count(*) FROM iceberg_snapshots({ns}.t)") == [(1,)]


@pytest.mark.usefixtures("table")
def test_spark_writes_and_reads(by_spark: Sql, catalog: RestCatalog, namespace: str) -> None:
    assert by_spark("SELECT id, name FROM {ns}.t ORDER BY id") == [(1, "a"), (2, "b")]
    by_spark("INSERT INTO {ns}.t VALUES (3, 'c')")
    by_spark("DELETE FROM {ns}.t WHERE id = 1")
    by_spark("CREATE TABLE {ns}.copied USING iceberg PARTITIONED BY (name) AS SELECT * FROM {ns}.t")
    assert by_spark("SELECT id FROM {ns}.copied ORDER BY id") == [(2,), (3,)]
    assert sorted(catalog.load_table((namespace, "copied")).scan().to_arrow()["id"].to_pylist()) == [2, 3]
    by_spark("CALL bucket.system.rewrite_data_files(table => '{namespace}.t')")
    by_spark("DROP TABLE {ns}.copied")
