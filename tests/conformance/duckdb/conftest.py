"""For the tests of DuckDB: `run` is DuckDB."""

from collections.abc import Iterator

import pytest

from pipeline.spark.catalogs import RestCatalog
from tests.conformance.sql import Sql
from tests.servers import duckdb


@pytest.fixture
def run(rest_catalog: RestCatalog, namespace: str) -> Iterator[Sql]:
    """A connection of the test's own: DuckDB keeps what it has read of a catalog."""
    with duckdb.connected(rest_catalog) as connection:
        yield Sql(lambda statement: connection.execute(statement).fetchall(), namespace)
