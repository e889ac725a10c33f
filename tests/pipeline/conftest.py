"""For the pipeline's lane: one server, one Spark session, and warehouses with a log each.

A test appends to the log, calls `stage.flush()`, which waits for the pipeline that follows the log, and reads the tables with PyIceberg, which shares no code with the writer.
"""

from collections.abc import Iterator
from itertools import count

import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.run import SETTINGS
from pipeline.sources.postgres_log import LogSource
from pipeline.spark.session import session
from tests.pipeline.durable_log import DurableLog
from tests.pipeline.flushing import Follower, Stage, database_url
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
    with session([], app_name="tests", master="local[2]", settings=SETTINGS) as running:
        running.dataSource.register(LogSource)
        yield running


@pytest.fixture(scope="session")
def follower(server: DevServer, spark: SparkSession) -> Iterator[Follower]:
    """Follows the log of the server's warehouse."""
    DurableLog(database_url(server), server.info.warehouse.id, namespace=[]).close()
    running = Follower(server, spark)
    running.start()
    yield running
    running.close()


@pytest.fixture
def stage(server: DevServer, follower: Follower) -> Iterator[Stage]:
    """A namespace of the test's own, and the warehouse's log."""
    with Stage.open(server, follower, namespace=f"ns{next(_numbers)}") as opened:
        yield opened
