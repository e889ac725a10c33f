"""For the tests of the development issuer: the issuer as a real process, and a browser that has no JavaScript."""

from collections.abc import Iterator

import pytest

from tests.integration.authn.browser import Browser
from tests.servers.issuer import RunningIssuer, run_issuer


@pytest.fixture(scope="session")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    with run_issuer(tmp_path_factory.mktemp("dev-issuer") / "state") as running:
        yield running


@pytest.fixture
def browser() -> Browser:
    return Browser()
