"""For two servers on one database: `pair` runs for the whole session; `lake` is a warehouse of the test's own."""

from collections.abc import Iterator

import pytest

from tests.integration.replicas.pair import Lake, Pair, add_clients, started
from tests.servers.issuer import run_issuer


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    state_dir = tmp_path_factory.mktemp("replicas") / "state"
    signed_in = add_clients(state_dir)
    with run_issuer(state_dir) as issuer, started(issuer, signed_in(issuer)) as both:
        yield both


@pytest.fixture
def lake(pair: Pair) -> Lake:
    return Lake.made(pair)
