"""Namespaces, tables and views as Trino creates, lists, renames and drops them."""

import pytest

from tests.conformance.sql import Sql
from tests.servers.lakewarden_server import DevServer
from tests.servers.trino import TrinoFailed


def test_a_schema_is_created_listed_and_dropped(run: Sql) -> None:
    run("CREATE SCHEMA lake.trino_short")
    assert ("trino_short",) in run("SHOW SCHEMAS FROM lake")
    with pytest.raises(TrinoFailed, match="SCHEMA_ALREADY_EXISTS"):
        run("CREATE SCHEMA lake.trino_short")
    run("DROP SCHEMA lake.trino_short")
    assert ("trino_short",) not in run("SHOW SCHEMAS FROM lake")


def test_a_schema_with_a_location_of_its_own_holds_its_tables_there(run: Sql, server: DevServer) -> None:
    location = f"{server.info.warehouse.location}/chosen"
    run("CREATE SCHEMA lake.trino_placed WITH (location = '{location}')", location=location)
    run("CREATE TABLE lake.trino_placed.t AS SELECT 1 AS id")
    ((path,),) = run('SELECT file_path FROM lake.trino_placed."t$files"')
    assert path.startswith(f"{location}/t")
    run("DROP SCHEMA lake.trino_placed CASCADE")


def test_a_nested_schema_holds_tables_of_its_own(run: Sql) -> None:
    run('CREATE SCHEMA lake."{namespace}.inner"')
    run('CREATE TABLE lake."{namespace}.inner".t AS SELECT 2 AS x')
    assert run('SELECT x FROM lake."{namespace}.inner".t') == [(2,)]
    assert run("SHOW TABLES FROM {ns}") == []


def test_a_schema_with_a_table_is_dropped_only_in_cascade(run: Sql, namespace: str) -> None:
    run("CREATE TABLE {ns}.t (id bigint)")
    with pytest.raises(TrinoFailed, match="SCHEMA_NOT_EMPTY"):
        run("DROP SCHEMA {ns}")
    run("DROP SCHEMA {ns} CASCADE")
    assert (namespace,) not in run("SHOW SCHEMAS FROM lake")


def test_what_is_missing_or_there_already_is_told(run: Sql) -> None:
    with pytest.raises(TrinoFailed, match="TABLE_NOT_FOUND"):
        run("SELECT * FROM {ns}.none")
    with pytest.raises(TrinoFailed, match="Schema absent not found"):
        run("CREATE TABLE lake.absent.t (id bigint)")
    run("CREATE TABLE {ns}.t (id bigint)")
    with pytest.raises(TrinoFailed, match="TABLE_ALREADY_EXISTS"):
        run("CREATE TABLE {ns}.t (id bigint)")


def test_a_table_is_renamed_and_dropped(run: Sql) -> None:
    run("CREATE TABLE {ns}.old AS SELECT 1 AS id")
    run("ALTER TABLE {ns}.old RENAME TO {ns}.new")
    assert run("SHOW TABLES FROM {ns}") == [("new",)]
    assert run("SELECT id FROM {ns}.new") == [(1,)]
    run("DROP TABLE {ns}.new")
    assert run("SHOW TABLES FROM {ns}") == []


def test_a_view_is_created_replaced_renamed_and_dropped(run: Sql) -> None:
    run("CREATE TABLE {ns}.t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (id, name)")
    run("CREATE VIEW {ns}.v COMMENT 'told' AS SELECT id FROM {ns}.t")
    assert run("SELECT id FROM {ns}.v ORDER BY id") == [(1,), (2,)]
    run("CREATE OR REPLACE VIEW {ns}.v AS SELECT count(*) AS n FROM {ns}.t")
    assert run("SELECT n FROM {ns}.v") == [(2,)]
    run("ALTER VIEW {ns}.v RENAME TO {ns}.w")
    assert sorted(run("SHOW TABLES FROM {ns}")) == [("t",), ("w",)]
    run("DROP VIEW {ns}.w")
    assert run("SHOW TABLES FROM {ns}") == [("t",)]


def test_a_materialized_view_is_refused_and_leaves_nothing(run: Sql) -> None:
    run("CREATE TABLE {ns}.t AS SELECT 1 AS id")
    with pytest.raises(TrinoFailed, match="createMaterializedView is not supported"):
        run("CREATE MATERIALIZED VIEW {ns}.m AS SELECT id FROM {ns}.t")
    assert run("SHOW TABLES FROM {ns}") == [("t",)]


def test_the_information_schema_lists_what_is_there(run: Sql) -> None:
    run("CREATE TABLE {ns}.t (id bigint NOT NULL, name varchar)")
    run("CREATE VIEW {ns}.v AS SELECT id FROM {ns}.t")
    assert run("""
        SELECT table_name, table_type FROM lake.information_schema.tables WHERE table_schema = '{namespace}' ORDER BY 1
    """) == [("t", "BASE TABLE"), ("v", "VIEW")]
    assert run("""
        SELECT column_name, is_nullable, data_type FROM lake.information_schema.columns
        WHERE table_schema = '{namespace}' AND table_name = 't' ORDER BY ordinal_position
    """) == [("id", "NO", "bigint"), ("name", "YES", "varchar")]
