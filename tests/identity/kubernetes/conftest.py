"""For the tests of Kubernetes identities: one real API server, and a `lakewarden serve` for each way to ask it.

`by_review` asks the API server about each token and knows accounts by uid, with an OIDC provider beside it;
`by_keys` verifies with the cluster's keys and knows accounts by name. `reader` is an account in namespace `lake`.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from standalone.commands import AUDIENCE
from tests.identity.kubernetes.lane import NAMESPACE, RECHECK_AFTER_S, NewAccount
from tests.servers import kubernetes, lakewarden_serve
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.kubernetes import KubernetesCluster, ServiceAccount
from tests.servers.lakewarden_serve import LakewardenServer

_numbers = count(1)


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[KubernetesCluster]:
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        kubernetes.build()  # says what takes so long the first time
    with kubernetes.start() as running:
        running.create_namespace(NAMESPACE)
        yield running


@pytest.fixture
def new_account(cluster: KubernetesCluster) -> NewAccount:
    """Makes accounts `reader-1`, `reader-2`, … in the namespace `lake`."""
    return lambda: cluster.create_service_account(NAMESPACE, f"reader-{next(_numbers)}")


@pytest.fixture
def reader(new_account: NewAccount) -> ServiceAccount:
    return new_account()


@pytest.fixture
def token(cluster: KubernetesCluster, reader: ServiceAccount) -> str:
    """A token of `reader` for Lakewarden."""
    return cluster.token(reader, audience=AUDIENCE)


@pytest.fixture(scope="session")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    """An OIDC provider that has nothing to do with the cluster."""
    with run_issuer(tmp_path_factory.mktemp("oidc") / "state") as running:
        yield running


def _own_token_file(cluster: KubernetesCluster, account: ServiceAccount) -> Path:
    """What the kubelet would mount into the server's pod."""
    path = cluster.directory / f"{account.name}.token"
    path.touch(mode=0o600)
    path.write_text(cluster.token(account))
    return path


def _settings(cluster: KubernetesCluster, account: ServiceAccount, **kubernetes_settings: str) -> dict[str, str]:
    section = {
        "ENABLED": "true",
        "API_SERVER": cluster.url,
        "CA_FILE": str(cluster.ca_file),
        "TOKEN_FILE": str(_own_token_file(cluster, account)),
        "AUDIENCE": AUDIENCE,
        **kubernetes_settings,
    }
    return {f"LAKEWARDEN__KUBERNETES__{name}": value for name, value in section.items()}


@pytest.fixture(scope="session")
def by_review(cluster: KubernetesCluster, issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    own = cluster.create_service_account(NAMESPACE, "server-that-reviews")
    cluster.bind_cluster_role("system:auth-delegator", own)
    settings = _settings(cluster, own, METHOD="token-review", SUBJECT="uid", RECHECK_AFTER_S=str(RECHECK_AFTER_S)) | {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
    }
    with lakewarden_serve.serve(settings) as server:
        yield server


@pytest.fixture(scope="session")
def by_keys(cluster: KubernetesCluster) -> Iterator[LakewardenServer]:
    own = cluster.create_service_account(NAMESPACE, "server-with-keys")  # no rights are bound to it
    with lakewarden_serve.serve(_settings(cluster, own, METHOD="keys", SUBJECT="name")) as server:
        yield server


@pytest.fixture(params=["by_review", "by_keys"])
def server(request: pytest.FixtureRequest) -> LakewardenServer:
    """Both, one after the other."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, LakewardenServer)
    return found
