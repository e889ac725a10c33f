"""What the tests of this lane and its servers agree on, and how the servers are asked."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tests.servers.kubernetes import KubernetesCluster, ServiceAccount
from tests.servers.lakewarden_serve import LakewardenServer

NAMESPACE = "lake"

RECHECK_AFTER_S = 2  # sooner than by default, for quick tests

NewAccount = Callable[[], ServiceAccount]


def whoami(server: LakewardenServer, token: str) -> requests.Response:
    """What the server says to the holder of this token; it has to say something within 20 s."""
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{server.management_uri}/v1/whoami", headers=headers, timeout=20)


def user_of(server: LakewardenServer, token: str) -> dict[str, Any]:
    """The user that the server takes the token's holder for."""
    answer = whoami(server, token)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def timed_whoami(server: LakewardenServer, token: str) -> tuple[requests.Response, float]:
    """The same, and how many seconds it took."""
    started = time.monotonic()
    answer = whoami(server, token)
    return answer, time.monotonic() - started


@contextmanager
def without_api_server(cluster: KubernetesCluster) -> Iterator[None]:
    """Nobody listens on the API server's port meanwhile."""
    cluster.stop_api_server()
    try:
        yield
    finally:
        cluster.start_api_server()
