"""Namespaces in Spark's SQL."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from tests.conformance.sql import Sql


def test_a_namespace_is_created_described_changed_and_dropped(run: Sql, namespace: str) -> None:
    run("CREATE NAMESPACE {ns}.inner COMMENT 'a test' WITH DBPROPERTIES ('a' = '1', 'b' = '2')")
    assert run("SHOW NAMESPACES IN {ns}") == [(f"{namespace}.inner",)]
    told = run.mapping("DESCRIBE NAMESPACE EXTENDED {ns}.inner")
    assert told["Comment"] == "a test"
    assert "(a,1)" in told["Properties"]
    run("ALTER NAMESPACE {ns}.inner SET PROPERTIES ('a' = '3')")
    run("ALTER NAMESPACE {ns}.inner UNSET PROPERTIES ('b')")
    properties = run.mapping("DESCRIBE NAMESPACE EXTENDED {ns}.inner")["Properties"]
    assert "(a,3)" in properties
    assert "(b," not in properties
    run("DROP NAMESPACE {ns}.inner")
    assert run("SHOW NAMESPACES IN {ns}") == []


def test_a_namespace_with_a_table_is_not_dropped(run: Sql) -> None:
    run("CREATE TABLE {ns}.t (id INT) USING iceberg")
    with pytest.raises(Py4JJavaError, match="NamespaceNotEmptyException"):
        run("DROP NAMESPACE {ns}")
    assert run("SHOW TABLES IN {ns}")


def test_what_is_missing_is_told(run: Sql) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("SELECT * FROM {ns}.none")
    with pytest.raises(Py4JJavaError, match="NoSuchNamespaceException"):
        run("SHOW TABLES IN {ns}.none")
    run("CREATE TABLE {ns}.t (id INT) USING iceberg")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        run("CREATE TABLE {ns}.t (id INT) USING iceberg")
