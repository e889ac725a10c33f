"""For Spark's tests: `run` executes a statement whose `{ns}` is the test's namespace and gives its rows as tuples."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

Run = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def run(spark: SparkSession, namespace: str) -> Run:
    def execute(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(statement.replace("{ns}", f"lake.{namespace}")).collect()]

    return execute
