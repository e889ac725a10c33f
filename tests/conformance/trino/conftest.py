"""For the tests of Trino: `run` is Trino."""

import pytest

from tests.conformance.sql import Sql


@pytest.fixture
def run(by_trino: Sql) -> Sql:
    return by_trino
