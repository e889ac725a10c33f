"""Engines that get their tokens from Keycloak themselves: `credential` and `oauth2-server-uri`, nothing else."""

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyspark.sql import SparkSession

from pipeline.spark.catalogs import RestCatalog

ROWS = {"id": [1, 2, 3], "city": ["Oslo", "Bergen", "Tromsø"]}


def test_pyiceberg_creates_writes_and_reads_a_table(engine: RestCatalog) -> None:
    rows = pa.table(ROWS)
    with PyIcebergCatalog(engine.name, **engine.properties()) as catalog:
        catalog.create_namespace("by_pyiceberg")
        catalog.create_table("by_pyiceberg.cities", schema=rows.schema).append(rows)

        assert catalog.load_table("by_pyiceberg.cities").scan().to_arrow().to_pydict() == ROWS


def test_pyiceberg_with_a_wrong_secret_is_told_so_by_keycloak(engine: RestCatalog) -> None:
    properties = engine.properties() | {"credential": "spark:wrong"}

    with pytest.raises(Exception, match=r"(?i)invalid client|unauthorized_client"):
        PyIcebergCatalog(engine.name, **properties)


@pytest.mark.usefixtures("after_first_token_of_spark")
def test_spark_creates_writes_and_reads_a_table(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE by_spark")
    spark.sql("CREATE TABLE by_spark.cities (id bigint, city string)")
    spark.sql("INSERT INTO by_spark.cities VALUES (1, 'Oslo'), (2, 'Bergen')")

    assert [tuple(row) for row in spark.sql("SELECT * FROM by_spark.cities ORDER BY id").collect()] == [
        (1, "Oslo"),
        (2, "Bergen"),
    ]
