"""One engine for all tests, on which the guide has been followed as far as a test asks for."""

from collections.abc import Iterator

import pytest

from tests.compose import stand_ins
from tests.compose.guide import Guide, followed
from tests.servers import docker_engine
from tests.servers.docker_engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with docker_engine.start() as running:
        stand_ins.provide_all(running)
        yield running


@pytest.fixture(scope="session")
def guide(engine: Engine) -> Iterator[Guide]:
    with followed(engine) as shell:
        yield shell


@pytest.fixture(scope="session")
def started(guide: Guide) -> str:
    """What was said when everything was up."""
    return guide.follow("start")


@pytest.fixture(scope="session")
def furnished(guide: Guide, started: str) -> Guide:
    """With an administrator, a warehouse and a namespace."""
    guide.follow("people")
    guide.follow("warehouse")
    return guide


@pytest.fixture(scope="session")
def filled(furnished: Guide) -> Guide:
    """With the rows of the guide in a table."""
    furnished.follow("pipeline")
    furnished.follow("rows")
    return furnished
