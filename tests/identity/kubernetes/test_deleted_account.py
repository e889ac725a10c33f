"""What a deleted service account may still do: a review notices it within seconds, keys only when the token expires."""

import time

import pytest

from tests.identity.kubernetes.lane import RECHECK_AFTER_S, whoami
from tests.servers.kubernetes import KubernetesCluster, ServiceAccount
from tests.servers.lakewarden_serve import LakewardenServer

pytestmark = pytest.mark.timeout(func_only=True)

# the API server remembers its own answers for 10 s; the server asks when its recheck is due and a request comes
_NOTICED_WITHIN_S = 15.0 + RECHECK_AFTER_S


def test_access_ends_by_review_and_lasts_by_keys(
    by_review: LakewardenServer,
    by_keys: LakewardenServer,
    cluster: KubernetesCluster,
    reader: ServiceAccount,
    token: str,
) -> None:
    assert [whoami(server, token).status_code for server in (by_review, by_keys)] == [200, 200]
    cluster.delete_service_account(reader)
    deadline = time.monotonic() + _NOTICED_WITHIN_S
    while (refused := whoami(by_review, token)).status_code == 200:
        assert time.monotonic() < deadline, f"still accepted {_NOTICED_WITHIN_S} s after the account was deleted"
        time.sleep(0.5)
    assert refused.status_code == 401
    assert whoami(by_keys, token).status_code == 200
