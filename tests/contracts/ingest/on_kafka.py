"""A gateway whose contents go to a real Kafka, in all tests: fixtures."""

from collections.abc import Iterator

import pytest

from ingest.services.kafka import records
from lakewarden.config import KafkaLogConfig
from tests.contracts.ingest.topics import settings_of
from tests.integration.ingest.changed import limits
from tests.servers import kafka
from tests.servers.kafka import KafkaServer


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaServer]:
    with kafka.start() as running:
        yield running


@pytest.fixture(autouse=True)
def contents(broker: KafkaServer, database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaLogConfig]:
    """A topic of the test's own, which the gateway makes."""
    settings = settings_of(broker)
    limits(monkeypatch, contents="kafka", kafka=settings)
    yield settings
    into = records.current()
    assert into is not None
    into.close()
