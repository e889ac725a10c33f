"""The API server is unavailable: verified callers continue, new ones get 503, and no request waits for long."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from standalone.commands import AUDIENCE
from tests.identity.kubernetes.lane import RECHECK_AFTER_S, NewAccount, timed_whoami, whoami, without_api_server
from tests.servers.issuer import RunningIssuer
from tests.servers.kubernetes import KubernetesCluster
from tests.servers.lakewarden_serve import LakewardenServer

pytestmark = pytest.mark.timeout(func_only=True)

_AT_ONCE_S = 1.0
_SOON_S = 10.0
_CROWD = 40  # more than a server has threads


def hanging(cluster: KubernetesCluster) -> AbstractContextManager[None]:
    """It accepts connections and says nothing."""
    return cluster.hanging()


@pytest.mark.parametrize("away", [without_api_server, hanging])
def test_verified_tokens_work_on_and_new_ones_get_503(
    by_review: LakewardenServer,
    cluster: KubernetesCluster,
    new_account: NewAccount,
    issuer: RunningIssuer,
    away: Callable[[KubernetesCluster], AbstractContextManager[None]],
) -> None:
    verified, unseen = (cluster.token(new_account(), audience=AUDIENCE) for _ in range(2))
    others = issuer.engine_token()
    assert whoami(by_review, verified).status_code == 200
    with away(cluster):
        answer, seconds = timed_whoami(by_review, unseen)
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["Retry-After"]) >= 1
        assert seconds < _SOON_S
        until = time.monotonic() + 2 * RECHECK_AFTER_S
        while time.monotonic() < until:
            _assert_at_once(by_review, verified)
            _assert_at_once(by_review, others)
            time.sleep(0.2)
    assert _becomes_ok(by_review, unseen)


def test_known_keys_verify_new_tokens_all_the_same(
    by_keys: LakewardenServer, cluster: KubernetesCluster, new_account: NewAccount, token: str
) -> None:
    unseen = cluster.token(new_account(), audience=AUDIENCE)
    assert whoami(by_keys, token).status_code == 200
    with cluster.hanging():
        _assert_at_once(by_keys, unseen)


def test_a_crowd_of_new_tokens_does_not_hold_up_verified_ones(
    by_review: LakewardenServer, cluster: KubernetesCluster, token: str
) -> None:
    assert whoami(by_review, token).status_code == 200
    crowd = [cluster.signed_again(token, {"jti": str(number)}) for number in range(_CROWD)]
    with cluster.hanging(), ThreadPoolExecutor(_CROWD) as callers:
        answers = [callers.submit(timed_whoami, by_review, unseen) for unseen in crowd]
        time.sleep(0.3)  # until they are all inside
        for _ in range(3):
            _assert_at_once(by_review, token)
        told = [answer.result() for answer in answers]
    assert {answer.status_code for answer, _ in told} == {503}
    assert max(seconds for _, seconds in told) < _SOON_S


def test_servers_that_start_before_the_api_server(
    by_review: LakewardenServer, by_keys: LakewardenServer, cluster: KubernetesCluster, token: str
) -> None:
    with without_api_server(cluster):
        for server in (by_review, by_keys):
            server.restart()
            assert whoami(server, token).status_code == 503
    assert _becomes_ok(by_review, token)
    assert _becomes_ok(by_keys, token)


def _assert_at_once(server: LakewardenServer, token: str) -> None:
    answer, seconds = timed_whoami(server, token)
    assert (answer.status_code, seconds < _AT_ONCE_S) == (200, True), f"{answer.text} after {seconds:.1f} s"


def _becomes_ok(server: LakewardenServer, token: str) -> bool:
    """Whether the token is accepted within the time that a failure may be remembered."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if whoami(server, token).status_code == 200:
            return True
        time.sleep(0.2)
    return False
