"""What DuckDB does with a catalog: create, write, change and read tables, beside PyIceberg."""

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.conformance.sql import Sql


def rows(catalog: RestCatalog, namespace: str, table: str) -> list[dict[str, object]]:
    """What PyIceberg reads, in the order of `id`."""
    return list(catalog.load_table((namespace, table)).scan().to_arrow().sort_by("id").to_pylist())


def test_schemas_are_created_listed_and_dropped(run: Sql, catalog: RestCatalog) -> None:
    run("CREATE SCHEMA lake.{namespace}_own")
    assert run("SELECT schema_name FROM duckdb_schemas() WHERE schema_name = '{namespace}_own'")
    assert catalog.namespace_exists(f"{run.namespace}_own")
    run("DROP SCHEMA lake.{namespace}_own")
    assert not catalog.namespace_exists(f"{run.namespace}_own")


def test_rows_are_inserted_updated_and_deleted(run: Sql, catalog: RestCatalog, namespace: str) -> None:
    run("CREATE TABLE {ns}.t (id BIGINT, name VARCHAR, seen TIMESTAMP, price DECIMAL(9, 2))")
    run("INSERT INTO {ns}.t VALUES (1, 'one', '2026-01-01 10:00:00', 1.5), (2, 'two', NULL, 2), (3, NULL, NULL, NULL)")
    assert run("UPDATE {ns}.t SET name = 'eins' WHERE id = 1") == [(1,)]
    assert run("DELETE FROM {ns}.t WHERE id = 2") == [(1,)]
    assert run("SELECT id, name FROM {ns}.t ORDER BY id") == [(1, "eins"), (3, None)]
    assert [(row["id"], row["name"]) for row in rows(catalog, namespace, "t")] == [(1, "eins"), (3, None)]


def test_a_table_is_created_from_a_query(run: Sql, catalog: RestCatalog, namespace: str) -> None:
    run("CREATE TABLE {ns}.numbers AS SELECT range AS id, 'n' || range AS name FROM range(1000)")
    assert run("SELECT count(*), sum(id) FROM {ns}.numbers") == [(1000, 499500)]
    assert len(rows(catalog, namespace, "numbers")) == 1000


def test_it_reads_what_another_client_wrote_and_sees_what_that_adds(
    run: Sql, catalog: RestCatalog, namespace: str
) -> None:
    table = catalog.create_table((namespace, "t"), pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table.append(pa.table({"id": [1], "name": ["pyiceberg"]}))
    assert run("SELECT * FROM {ns}.t") == [(1, "pyiceberg")]
    table.append(pa.table({"id": [2], "name": ["again"]}))
    assert run("SELECT id FROM {ns}.t ORDER BY id") == [(1,), (2,)]
    assert len(run("SELECT * FROM iceberg_snapshots({ns}.t)")) == 2


def test_columns_are_changed(run: Sql, catalog: RestCatalog, namespace: str) -> None:
    run("CREATE TABLE {ns}.t AS SELECT 1::BIGINT AS id, 'a' AS name")
    run("ALTER TABLE {ns}.t ADD COLUMN extra DOUBLE")
    run("ALTER TABLE {ns}.t RENAME COLUMN name TO title")
    assert [field.name for field in catalog.load_table((namespace, "t")).schema().fields] == ["id", "title", "extra"]
    assert run("SELECT * FROM {ns}.t") == [(1, "a", None)]


def test_a_transaction_that_is_rolled_back_leaves_nothing(run: Sql, catalog: RestCatalog, namespace: str) -> None:
    run("CREATE TABLE {ns}.t AS SELECT 1::BIGINT AS id")
    run("BEGIN")
    run("INSERT INTO {ns}.t VALUES (2)")
    run("ROLLBACK")
    assert rows(catalog, namespace, "t") == [{"id": 1}]


def test_tables_are_renamed_and_dropped(run: Sql, catalog: RestCatalog, namespace: str) -> None:
    run("CREATE TABLE {ns}.t AS SELECT 1::BIGINT AS id")
    run("ALTER TABLE {ns}.t RENAME TO other")
    assert catalog.list_tables(namespace) == [(namespace, "other")]
    run("DROP TABLE {ns}.other")
    assert catalog.list_tables(namespace) == []


def test_a_mistake_has_the_catalogs_message(run: Sql, catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table((namespace, "t"), pa.schema([("id", pa.int64())]))
    with pytest.raises(duckdb.Error, match="is not empty"):
        run("DROP SCHEMA {ns}")
