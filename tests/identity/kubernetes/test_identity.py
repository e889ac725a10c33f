"""Who a service account is: to a server that reviews tokens, and to one that knows the cluster's keys."""

import pytest
import requests

from standalone.commands import AUDIENCE
from tests.identity.kubernetes.lane import NAMESPACE, NewAccount, user_of
from tests.servers.issuer import RunningIssuer
from tests.servers.kubernetes import KubernetesCluster, ServiceAccount
from tests.servers.lakewarden_serve import LakewardenServer

# the first test waits for the cluster, whose programs may have to be built
pytestmark = pytest.mark.timeout(func_only=True)


def test_review_gives_the_uid_as_identity(by_review: LakewardenServer, reader: ServiceAccount, token: str) -> None:
    user = user_of(by_review, token)
    assert user["id"] == f"kubernetes~{reader.uid}"
    assert (user["name"], user["user-type"]) == (f"{NAMESPACE}/{reader.name}", "application")


def test_keys_give_the_name_as_identity(by_keys: LakewardenServer, reader: ServiceAccount, token: str) -> None:
    user = user_of(by_keys, token)
    assert user["id"] == f"kubernetes~system:serviceaccount:{NAMESPACE}:{reader.name}"
    assert (user["name"], user["user-type"]) == (f"{NAMESPACE}/{reader.name}", "application")


def test_two_tokens_of_one_account_are_one_user(
    server: LakewardenServer, cluster: KubernetesCluster, reader: ServiceAccount, token: str
) -> None:
    renewed = cluster.token(reader, audience=AUDIENCE, lifetime_s=1200)
    assert renewed != token
    assert user_of(server, renewed)["id"] == user_of(server, token)["id"]


def test_an_account_made_again_under_the_same_name_is_another_user_by_uid(
    by_review: LakewardenServer, cluster: KubernetesCluster, reader: ServiceAccount, token: str
) -> None:
    before = user_of(by_review, token)["id"]
    cluster.delete_service_account(reader)
    again = cluster.create_service_account(reader.namespace, reader.name)
    after = user_of(by_review, cluster.token(again, audience=AUDIENCE))["id"]
    assert (before, after) == (f"kubernetes~{reader.uid}", f"kubernetes~{again.uid}")
    assert reader.uid != again.uid


def test_an_oidc_user_is_known_beside_service_accounts(
    by_review: LakewardenServer, issuer: RunningIssuer, token: str
) -> None:
    engine = user_of(by_review, issuer.engine_token())
    assert engine["id"] == f"oidc~{issuer.identities.engine.subject}"
    assert user_of(by_review, token)["id"].startswith("kubernetes~")


def test_the_answer_of_config_makes_the_account_a_user(
    by_review: LakewardenServer, new_account: NewAccount, cluster: KubernetesCluster
) -> None:
    token = cluster.token(new_account(), audience=AUDIENCE)
    refused = requests.get(
        f"{by_review.catalog_uri}/v1/config",
        params={"warehouse": "no-such-warehouse"},
        headers={"Authorization": f"Bearer {token}"},
        timeout=20,
    )
    assert refused.status_code == 404
    assert user_of(by_review, token)["last-updated-with"] == "config-call-creation"
