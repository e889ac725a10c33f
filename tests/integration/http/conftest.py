"""For the tests of real servers: an issuer for each file, with the clients that a development server has."""

from collections.abc import Iterator

import pytest

from standalone.commands import AUDIENCE
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    with run_issuer(tmp_path_factory.mktemp("issuer") / "state") as running:
        yield running


@pytest.fixture(scope="module")
def server(issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    """Bootstrapped, and stopped within ten seconds; a test may stop it and start it again."""
    settings = {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
        "LAKEWARDEN__SERVER__STOP_TIMEOUT_S": "10",
    }
    with prepared(settings) as server:
        server.bootstrap(f"oidc~{issuer.identities.admin.subject}")
        server.start()
        yield server
