"""For the tests of real servers: an issuer for each file, with the clients that a development server has."""

from collections.abc import Iterator

import pytest

from tests.servers.issuer import RunningIssuer, run_issuer


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    with run_issuer(tmp_path_factory.mktemp("issuer") / "state") as running:
        yield running
