"""For the tests of Spark: `run` is Spark."""

import pytest

from tests.conformance.sql import Sql


@pytest.fixture
def run(by_spark: Sql) -> Sql:
    return by_spark
