"""For the pipeline's lane: one server, one Spark session, and warehouses with a log each.

A test appends to the log, calls `stage.flush()`, which waits for the pipeline that follows the log, and reads the tables with PyIceberg, which shares no code with the writer.
"""

from collections.abc import Iterator
from itertools import count

import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.run import S3_JAR, SETTINGS
from pipeline.sources.postgres_log import LogSource
from pipeline.spark.jars import CATALOG_JARS
from pipeline.spark.session import session
from tests.pipeline.flushing import Follower, Stage, following
from tests.servers.lakewarden_server import DevServer, start_dev

_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    # pyspark leaves the socket of each collected result to the garbage collector
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="session")
def server() -> Iterator[DevServer]:
    with start_dev() as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars = (*CATALOG_JARS, S3_JAR)
    with session([], app_name="tests", master="local[2]", settings=SETTINGS, jar_names=jars) as running:
        running.dataSource.register(LogSource)
        yield running


@pytest.fixture(scope="session")
def follower(server: DevServer, spark: SparkSession) -> Iterator[Follower]:
    """Follows the log of the server's warehouse."""
    with following(server, spark, server.info.warehouse) as running:
        yield running


@pytest.fixture
def stage(follower: Follower) -> Iterator[Stage]:
    """A namespace of the test's own, and the warehouse's log."""
    with Stage.open(follower, namespace=f"ns{next(_numbers)}") as opened:
        yield opened
