"""Tokens that must not open anything, by both methods: 401 with a sentence that tells an attacker nothing."""

import time
from collections.abc import Callable, Mapping

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from standalone.commands import AUDIENCE
from tests.identity.kubernetes.lane import whoami
from tests.servers.issuer import RunningIssuer
from tests.servers.kubernetes import ISSUER, KubernetesCluster, ServiceAccount
from tests.servers.lakewarden_serve import LakewardenServer

pytestmark = pytest.mark.timeout(func_only=True)

Forge = Callable[[KubernetesCluster, ServiceAccount], str]


def for_another_program(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    return cluster.token(account, audience="vault")


def for_the_api_server(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    return cluster.token(account, audience=ISSUER)


def with_a_changed_signature(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    signed, _, signature = cluster.token(account, audience=AUDIENCE).rpartition(".")
    other = "A" if signature[0] != "A" else "B"
    return f"{signed}.{other}{signature[1:]}"


def expired(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    now = int(time.time())
    token = cluster.token(account, audience=AUDIENCE)
    return cluster.signed_again(token, {"iat": now - 3600, "nbf": now - 3600, "exp": now - 600})


def not_yet_valid(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    now = int(time.time())
    token = cluster.token(account, audience=AUDIENCE)
    return cluster.signed_again(token, {"iat": now + 600, "nbf": now + 600, "exp": now + 1200})


def of_another_cluster(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    """All claims and the key's id are right, but the key is not."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return cluster.signed_again(cluster.token(account, audience=AUDIENCE), key=key)


def unsigned(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    claims = cluster.token(account, audience=AUDIENCE).split(".")[1]
    return f"eyJhbGciOiJub25lIn0.{claims}."


def of_a_person(cluster: KubernetesCluster, account: ServiceAccount) -> str:
    """The API server knows the holder of the token, which is not a service account."""
    return cluster.person_token


@pytest.mark.parametrize(
    "forge",
    [
        for_another_program,
        for_the_api_server,
        with_a_changed_signature,
        expired,
        not_yet_valid,
        of_another_cluster,
        unsigned,
        of_a_person,
    ],
)
def test_refused(
    server: LakewardenServer, cluster: KubernetesCluster, reader: ServiceAccount, token: str, forge: Forge
) -> None:
    assert whoami(server, token).status_code == 200
    answer = whoami(server, forge(cluster, reader))
    assert answer.status_code == 401, answer.text
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    error = answer.json()["error"]
    assert (error["code"], error["type"]) == (401, "NotAuthorizedException")
    assert not [told for told in (reader.name, reader.uid, ISSUER, "vault", cluster.url) if told in answer.text]


def test_an_account_that_never_was_is_refused_by_review(
    by_review: LakewardenServer, cluster: KubernetesCluster, token: str
) -> None:
    ghost = {"namespace": "lake", "serviceaccount": {"name": "ghost", "uid": "7f8a1c9e-0000-4000-8000-000000000000"}}
    made_up = cluster.signed_again(token, {"sub": "system:serviceaccount:lake:ghost", "kubernetes.io": ghost})
    assert whoami(by_review, made_up).status_code == 401


@pytest.mark.parametrize("claims", [{"sub": "person"}, {"kubernetes.io": {"namespace": "lake"}}])
def test_a_signed_token_of_no_service_account_is_refused_by_keys(
    by_keys: LakewardenServer, cluster: KubernetesCluster, token: str, claims: Mapping[str, object]
) -> None:
    assert whoami(by_keys, cluster.signed_again(token, claims)).status_code == 401


def test_a_claim_to_be_from_the_oidc_provider_does_not_help(
    by_review: LakewardenServer, cluster: KubernetesCluster, issuer: RunningIssuer, token: str
) -> None:
    assert whoami(by_review, cluster.signed_again(token, {"iss": issuer.url})).status_code == 401


def test_an_oidc_token_does_not_open_a_server_without_its_provider(
    by_keys: LakewardenServer, issuer: RunningIssuer
) -> None:
    assert whoami(by_keys, issuer.engine_token()).status_code == 401
