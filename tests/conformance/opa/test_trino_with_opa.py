"""Users of one Trino see and do what Lakewarden lets each of them, with no rights in Trino itself."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.conformance.sql import Sql
from tests.servers import opa as opa_server
from tests.servers.opa import OpaServer
from tests.servers.trino import TrinoFailed

By = Callable[[str], Sql]
Grant = Callable[..., None]
ROWS = pa.table({"id": [1, 2]})


@pytest.fixture(autouse=True)
def tables(catalog: RestCatalog, namespace: str) -> None:
    """Two tables with rows."""
    for name in ("orders", "people"):
        catalog.create_table((namespace, name), ROWS.schema).append(ROWS)


def refused(sql: Sql, statement: str) -> None:
    with pytest.raises(TrinoFailed, match=r"PERMISSION_DENIED|NOT_FOUND"):
        sql(statement)


def test_the_policies_pass_their_own_tests() -> None:
    assert "PASS" in opa_server.run("test", "policies", "tests", "-v")
    opa_server.run("check", "--strict", "policies", "tests")


def test_two_users_see_different_tables(by: By, grant: Grant, anna: str, ben: str) -> None:
    grant(anna, "select", table="orders")
    grant(ben, "select", table="people")
    assert by(anna)("SHOW TABLES FROM {ns}") == [("orders",)]
    assert by(ben)("SHOW TABLES FROM {ns}") == [("people",)]
    seen = "SELECT table_name FROM lake.information_schema.tables WHERE table_schema = '{namespace}'"
    assert by(anna)(seen) == [("orders",)]
    assert by(anna)("SELECT count(*) FROM {ns}.orders") == [(2,)]
    assert by(anna)('SELECT count(*) FROM {ns}."orders$snapshots"') == [(1,)]
    refused(by(anna), "SELECT * FROM {ns}.people")
    refused(by(anna), 'SELECT * FROM {ns}."people$snapshots"')


def test_who_has_no_right_sees_nothing(by: By, anna: str) -> None:
    assert by(anna)("SHOW CATALOGS") == [("system",)]
    refused(by(anna), "SHOW SCHEMAS FROM lake")
    refused(by(anna), "SHOW TABLES FROM {ns}")
    refused(by(anna), "SELECT * FROM {ns}.orders")
    assert by(anna)("SELECT 1 + 1") == [(2,)]


def test_a_reader_writes_nothing(by: By, grant: Grant, anna: str) -> None:
    grant(anna, "select")
    for statement in (
        "INSERT INTO {ns}.orders VALUES 3",
        "DELETE FROM {ns}.orders",
        "UPDATE {ns}.orders SET id = 0",
        "TRUNCATE TABLE {ns}.orders",
        "ALTER TABLE {ns}.orders ADD COLUMN extra bigint",
        "ALTER TABLE {ns}.orders EXECUTE optimize",
        "ALTER TABLE {ns}.orders RENAME TO {ns}.mine",
        "COMMENT ON TABLE {ns}.orders IS 'mine'",
        "DROP TABLE {ns}.orders",
        "CREATE TABLE {ns}.more (id bigint)",
        "CREATE OR REPLACE TABLE {ns}.orders (id bigint)",
        "CREATE VIEW {ns}.v AS SELECT 1 AS one",
        "CREATE SCHEMA lake.{namespace}_two",
        "DROP SCHEMA {ns} CASCADE",
    ):
        refused(by(anna), statement)
    assert by(anna)("SELECT count(*) FROM {ns}.orders") == [(2,)]


def test_a_writer_writes_and_drops_nothing(by: By, grant: Grant, anna: str) -> None:
    grant(anna, "write", table="orders")
    by(anna)("INSERT INTO {ns}.orders VALUES 3")
    by(anna)("DELETE FROM {ns}.orders WHERE id = 1")
    assert by(anna)("SELECT id FROM {ns}.orders ORDER BY id") == [(2,), (3,)]
    refused(by(anna), "DROP TABLE {ns}.orders")


def test_who_may_create_replaces_nothing_of_others(by: By, grant: Grant, anna: str) -> None:
    grant(anna, "create", "select")
    by(anna)("CREATE TABLE {ns}.own AS SELECT 1 AS id")
    refused(by(anna), "CREATE OR REPLACE TABLE {ns}.orders (id bigint)")
    refused(by(anna), "CREATE OR REPLACE VIEW {ns}.orders AS SELECT 1 AS id")
    by(anna)("CREATE VIEW {ns}.v AS SELECT id FROM {ns}.orders")
    refused(by(anna), "DROP VIEW {ns}.v")  # Trino's own identity is its owner in Lakewarden


def test_a_right_that_is_taken_away_is_gone_in_the_next_query(by: By, grant: Grant, anna: str) -> None:
    grant(anna, "select", table="orders")
    assert by(anna)("SELECT count(*) FROM {ns}.orders") == [(2,)]
    grant(anna, "select", table="orders", how="deletes")
    refused(by(anna), "SELECT count(*) FROM {ns}.orders")


def test_an_administrator_of_the_namespace_does_everything(by: By, grant: Grant, anna: str) -> None:
    grant(anna, "modify", "create")
    by(anna)("ALTER TABLE {ns}.orders ADD COLUMN extra bigint")
    by(anna)("ALTER TABLE {ns}.orders RENAME TO {ns}.orders2")
    by(anna)("CREATE OR REPLACE TABLE {ns}.people (name varchar)")
    by(anna)("DROP TABLE {ns}.orders2")
    assert by(anna)("SHOW TABLES FROM {ns}") == [("people",)]


def test_rights_reach_nested_namespaces(by: By, grant: Grant, anna: str, ben: str, catalog: RestCatalog) -> None:
    namespace = by(anna).namespace
    catalog.create_namespace((namespace, "inner"))
    catalog.create_table((namespace, "inner", "t"), ROWS.schema).append(ROWS)
    grant(anna, "select")
    assert by(anna)('SELECT count(*) FROM lake."{namespace}.inner".t') == [(2,)]
    assert (f"{namespace}.inner",) in by(anna)("SHOW SCHEMAS FROM lake")
    grant(ben, "select", table="orders")
    refused(by(ben), 'SELECT count(*) FROM lake."{namespace}.inner".t')
    assert (f"{namespace}.inner",) not in by(ben)("SHOW SCHEMAS FROM lake")


def test_thousands_of_tables_are_filtered(opa: OpaServer, grant: Grant, anna: str, namespace: str) -> None:
    grant(anna, "select", table="people")
    names = [f"t{number}" for number in range(1200)] + ["people", "orders"]
    resources = [{"table": {"catalogName": "lake", "schemaName": namespace, "tableName": name}} for name in names]
    given = {
        "context": {"identity": {"user": anna, "groups": []}},
        "action": {"operation": "FilterTables", "filterResources": resources},
    }
    assert opa.ask("trino/batch", given) == [1200]
