"""Trino, Spark and PyIceberg on one table: each reads what the others wrote, and writes on."""

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.conformance.sql import Row, Sql


def refreshed(by_spark: Sql, statement: str) -> list[Row]:
    """The rows of a statement on table `t`; Spark holds tables for a while unless told."""
    by_spark("REFRESH TABLE {ns}.t")
    return by_spark(statement)


@pytest.mark.parametrize("creator", ["trino", "spark", "pyiceberg"])
def test_a_table_of_one_engine_is_written_and_read_by_all(
    by_trino: Sql, by_spark: Sql, catalog: RestCatalog, namespace: str, creator: str
) -> None:
    if creator == "trino":
        by_trino("CREATE TABLE {ns}.t (id bigint, name varchar) WITH (partitioning = ARRAY['name'])")
    elif creator == "spark":
        by_spark("CREATE TABLE {ns}.t (id BIGINT, name STRING) USING iceberg PARTITIONED BY (name)")
    else:
        catalog.create_table((namespace, "t"), pa.schema([("id", pa.int64()), ("name", pa.string())]))
    by_spark("INSERT INTO {ns}.t VALUES (1, 'spark')")
    by_trino("INSERT INTO {ns}.t VALUES (2, 'trino'), (20, 'gone')")
    catalog.load_table((namespace, "t")).append(pa.table({"id": [3], "name": ["pyiceberg"]}))
    by_trino("DELETE FROM {ns}.t WHERE id = 20")
    rows = [(1, "spark"), (2, "trino"), (3, "pyiceberg")]
    assert by_trino("SELECT id, name FROM {ns}.t ORDER BY id") == rows
    assert refreshed(by_spark, "SELECT id, name FROM {ns}.t ORDER BY id") == rows
    read = catalog.load_table((namespace, "t")).scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["name"]) for row in read] == rows


def test_a_change_of_schema_by_one_is_seen_by_the_others(
    by_trino: Sql, by_spark: Sql, catalog: RestCatalog, namespace: str
) -> None:
    by_trino("CREATE TABLE {ns}.t AS SELECT BIGINT '1' AS id, VARCHAR 'a' AS name")
    by_spark("ALTER TABLE {ns}.t RENAME COLUMN name TO title")
    with catalog.load_table((namespace, "t")).update_schema() as update:
        update.move_first("title")
    by_trino("ALTER TABLE {ns}.t ADD COLUMN extra double")
    assert [row[0] for row in by_trino("DESCRIBE {ns}.t")] == ["title", "id", "extra"]
    assert refreshed(by_spark, "SELECT * FROM {ns}.t") == [("a", 1, None)]
    assert catalog.load_table((namespace, "t")).scan().to_arrow().to_pylist() == [
        {"title": "a", "id": 1, "extra": None}
    ]


def test_branches_and_tags_of_spark_are_read_by_the_others(
    by_trino: Sql, by_spark: Sql, catalog: RestCatalog, namespace: str
) -> None:
    by_spark("CREATE TABLE {ns}.t USING iceberg AS SELECT 1L AS id")
    by_spark("ALTER TABLE {ns}.t CREATE TAG v1")
    by_spark("ALTER TABLE {ns}.t CREATE BRANCH dev")
    by_spark("INSERT INTO {ns}.t.branch_dev VALUES (2)")
    assert by_trino("SELECT count(*) FROM {ns}.t") == [(1,)]
    assert by_trino("SELECT count(*) FROM {ns}.t FOR VERSION AS OF 'dev'") == [(2,)]
    assert by_trino("SELECT count(*) FROM {ns}.t FOR VERSION AS OF 'v1'") == [(1,)]
    table = catalog.load_table((namespace, "t"))
    assert table.scan().use_ref("dev").count() == 2


def test_deletes_of_each_engine_are_obeyed_by_the_others(
    by_trino: Sql, by_spark: Sql, catalog: RestCatalog, namespace: str
) -> None:
    by_spark(
        "CREATE TABLE {ns}.t USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read') "
        "AS SELECT id FROM range(0, 6, 1, 1)"
    )
    by_spark("DELETE FROM {ns}.t WHERE id = 0")
    by_trino("DELETE FROM {ns}.t WHERE id = 1")
    with pytest.warns(UserWarning, match="Merge on read is not yet supported"):
        catalog.load_table((namespace, "t")).delete("id = 2")
    assert by_trino("SELECT id FROM {ns}.t ORDER BY id") == [(3,), (4,), (5,)]
    assert refreshed(by_spark, "SELECT id FROM {ns}.t ORDER BY id") == [(3,), (4,), (5,)]
    assert sorted(catalog.load_table((namespace, "t")).scan().to_arrow()["id"].to_pylist()) == [3, 4, 5]


def test_a_view_keeps_the_text_of_each_dialect_apart(
    by_trino: Sql, by_spark: Sql, catalog: RestCatalog, namespace: str
) -> None:
    by_trino("CREATE TABLE {ns}.t AS SELECT 1 AS id")
    by_trino("CREATE VIEW {ns}.of_trino AS SELECT id FROM {ns}.t")
    by_spark("CREATE VIEW {ns}.of_spark AS SELECT id FROM {ns}.t")
    assert sorted(name for (_, name) in catalog.list_views(namespace)) == ["of_spark", "of_trino"]
    view = catalog.load_view((namespace, "of_trino"))
    assert view.sql_for("trino") is not None
    assert view.sql_for("spark") is None
    assert by_spark("SELECT id FROM {ns}.of_spark") == [(1,)]
