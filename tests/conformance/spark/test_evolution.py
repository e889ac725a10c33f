"""Changing tables in Spark's SQL: columns, partitions, order, properties, names."""

import pytest
from pyspark.sql import SparkSession

from tests.conformance.sql import Sql


@pytest.fixture
def table(run: Sql) -> None:
    run("CREATE TABLE {ns}.t (id INT NOT NULL, name STRING, at TIMESTAMP, s STRUCT<x: INT>) USING iceberg")
    run("INSERT INTO {ns}.t VALUES (1, 'a', TIMESTAMP '2026-01-01 10:00:00', named_struct('x', 5))")


@pytest.mark.usefixtures("table")
def test_columns_are_added_renamed_widened_moved_and_dropped(run: Sql) -> None:
    run("ALTER TABLE {ns}.t ADD COLUMNS (extra STRING COMMENT 'new' AFTER id, s.y DOUBLE)")
    run("ALTER TABLE {ns}.t RENAME COLUMN name TO title")
    run("ALTER TABLE {ns}.t ALTER COLUMN id TYPE BIGINT")
    run("ALTER TABLE {ns}.t ALTER COLUMN id DROP NOT NULL")
    run("ALTER TABLE {ns}.t ALTER COLUMN title FIRST")
    run("ALTER TABLE {ns}.t DROP COLUMN at")
    assert [row[:2] for row in run("DESCRIBE TABLE {ns}.t")][:4] == [
        ("title", "string"),
        ("id", "bigint"),
        ("extra", "string"),
        ("s", "struct<x:int,y:double>"),
    ]
    assert run("SELECT title, id, extra, s.x, s.y FROM {ns}.t") == [("a", 1, None, 5, None)]


@pytest.mark.usefixtures("table")
def test_the_partition_spec_evolves_and_old_rows_stay(run: Sql) -> None:
    run("ALTER TABLE {ns}.t ADD PARTITION FIELD bucket(8, id) AS shard")
    run("ALTER TABLE {ns}.t ADD PARTITION FIELD month(at)")
    run("INSERT INTO {ns}.t VALUES (2, 'b', TIMESTAMP '2026-02-01 10:00:00', NULL)")
    run("ALTER TABLE {ns}.t REPLACE PARTITION FIELD at_month WITH days(at) AS day")
    run("ALTER TABLE {ns}.t DROP PARTITION FIELD shard")
    run("INSERT INTO {ns}.t VALUES (3, 'c', TIMESTAMP '2026-03-01 10:00:00', NULL)")
    assert run("SELECT count(*) FROM {ns}.t WHERE at >= TIMESTAMP '2026-02-01 00:00:00'") == [(2,)]
    specs = [spec for (spec,) in run("SELECT DISTINCT spec_id FROM {ns}.t.files ORDER BY 1")]
    assert len(specs) == 3


@pytest.mark.usefixtures("table")
def test_the_write_order_and_identifier_fields_are_kept(run: Sql) -> None:
    run("ALTER TABLE {ns}.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY name DESC NULLS LAST, id")
    run("ALTER TABLE {ns}.t SET IDENTIFIER FIELDS id")
    properties = run.mapping("SHOW TBLPROPERTIES {ns}.t")
    assert properties["sort-order"] == "name DESC NULLS LAST, id ASC NULLS FIRST"
    assert properties["identifier-fields"] == "[id]"
    run("ALTER TABLE {ns}.t DROP IDENTIFIER FIELDS id")
    run("ALTER TABLE {ns}.t WRITE UNORDERED")
    assert "sort-order" not in run.mapping("SHOW TBLPROPERTIES {ns}.t")


@pytest.mark.usefixtures("table")
def test_properties_are_set_and_unset(run: Sql) -> None:
    run("ALTER TABLE {ns}.t SET TBLPROPERTIES ('a.b' = 'ü', 'write.parquet.compression-codec' = 'zstd')")
    run("COMMENT ON TABLE {ns}.t IS 'told'")
    assert run.mapping("SHOW TBLPROPERTIES {ns}.t")["a.b"] == "ü"
    run("ALTER TABLE {ns}.t UNSET TBLPROPERTIES ('a.b')")
    assert "a.b" not in run.mapping("SHOW TBLPROPERTIES {ns}.t")
    assert ("Comment", "told") in [row[:2] for row in run("DESCRIBE TABLE EXTENDED {ns}.t")]


@pytest.mark.usefixtures("table")
def test_a_table_is_renamed_within_the_catalog(run: Sql, spark: SparkSession, namespace: str) -> None:
    # the new name never holds the catalog: Spark would take it for a namespace
    run("CREATE NAMESPACE {ns}.other")
    run("ALTER TABLE {ns}.t RENAME TO {namespace}.other.moved")
    assert run("SELECT id, name FROM {ns}.other.moved") == [(1, "a")]
    assert not spark.catalog.tableExists(f"lake.{namespace}.t")


@pytest.mark.usefixtures("table")
def test_an_old_table_is_upgraded_step_by_step(run: Sql) -> None:
    run("CREATE TABLE {ns}.old USING iceberg TBLPROPERTIES ('format-version' = '1') AS SELECT id, name FROM {ns}.t")
    for version in ("2", "3"):
        run("ALTER TABLE {ns}.old SET TBLPROPERTIES ('format-version' = '{version}')", version=version)
        assert run.mapping("SHOW TBLPROPERTIES {ns}.old")["format-version"] == version
        run("INSERT INTO {ns}.old VALUES ({version}, 'v{version}')", version=version)
    assert run("SELECT * FROM {ns}.old ORDER BY id") == [(1, "a"), (2, "v2"), (3, "v3")]
