"""The server asks Keycloak about each token (RFC 7662, `ALL_TOKENS`), so that what was revoked there ends here.

A server of its own beside the lane's, for the same realm; it asks again about a token in use after a second.
"""

import time
from collections.abc import Iterator

import pytest

from tests.identity.keycloak.caller import Caller, claims_of
from tests.identity.keycloak.lane import AUDIENCE, CallerOf
from tests.identity.keycloak.sign_in import CLIENT
from tests.servers.keycloak import Keycloak, Realm
from tests.servers.lakewarden_serve import LakewardenServer, serve

RECHECK_S = 1
# the request that finds the token due is still answered, the one after Keycloak's answer is refused
NOTICED_WITHIN_S = RECHECK_S + 3


@pytest.fixture(scope="module")
def asking(realm: Realm) -> Iterator[LakewardenServer]:
    """A server that introspects all tokens."""
    settings = {
        "ISSUER": realm.issuer,
        "AUDIENCE": AUDIENCE,
        "INTROSPECTION__CLIENT_ID": "lakewarden",
        "INTROSPECTION__CLIENT_SECRET": "lakewarden-secret",
        "INTROSPECTION__ALL_TOKENS": "true",
        "INTROSPECTION__RECHECK_AFTER_S": str(RECHECK_S),
    }
    with serve({f"LAKEWARDEN__OPENID__OIDC__{name}": value for name, value in settings.items()}) as server:
        yield server


@pytest.fixture
def alice(asking: LakewardenServer, alice_tokens: dict[str, str]) -> Caller:
    """Alice, whose token the server has accepted, and who goes on using it."""
    caller = Caller(asking.uri, alice_tokens["access_token"])
    answer = caller.whoami()
    assert (answer.status, answer.body["name"]) == (200, "Alice Adams")
    return caller


def seconds_until_refused(caller: Caller) -> float:
    began = time.monotonic()
    while (answer := caller.whoami()).status == 200:
        assert time.monotonic() - began < NOTICED_WITHIN_S, "The token is still accepted."
        time.sleep(0.1)
    assert answer.status == 401
    return time.monotonic() - began


def test_token_in_use_stays_good_past_the_recheck_interval(alice: Caller) -> None:
    for _ in range(5):
        time.sleep(RECHECK_S / 2)
        assert alice.whoami().status == 200


def test_logout_in_keycloak_ends_the_tokens_of_the_session(keycloak: Keycloak, alice: Caller) -> None:
    keycloak.admin("POST", f"/lake/users/{claims_of(alice.token)['sub']}/logout", {})

    assert seconds_until_refused(alice) <= NOTICED_WITHIN_S


def test_revoked_token_is_refused(realm: Realm, alice: Caller) -> None:
    """RFC 7009: the program that got the token gives it up."""
    status, _ = realm.ask("revoke", {"client_id": CLIENT, "token": alice.token})

    assert status == 200
    assert seconds_until_refused(alice) <= NOTICED_WITHIN_S


def test_revoked_token_that_lay_idle_is_refused_at_its_next_use(realm: Realm, alice: Caller) -> None:
    realm.ask("revoke", {"client_id": CLIENT, "token": alice.token})
    time.sleep(RECHECK_S * 5 + 0.5)  # so long unused it is asked about before the answer

    assert alice.whoami().status == 401


def test_token_of_a_disabled_client_is_refused(keycloak: Keycloak, asking: LakewardenServer, realm: Realm) -> None:
    caller = Caller(asking.uri, realm.client_token("other-tenant"))
    assert caller.whoami().status == 200
    (client,) = keycloak.admin("GET", "/lake/clients?clientId=other-tenant")
    keycloak.admin("PUT", f"/lake/clients/{client['id']}", {**client, "enabled": False})
    try:
        assert seconds_until_refused(caller) <= NOTICED_WITHIN_S
    finally:
        keycloak.admin("PUT", f"/lake/clients/{client['id']}", {**client, "enabled": True})


def test_lightweight_token_is_completed_by_what_keycloak_answers(
    asking: LakewardenServer, caller: CallerOf, realm: Realm
) -> None:
    token = realm.client_token("lightweight")
    assert not {"aud", "preferred_username"} & claims_of(token).keys()

    answer = Caller(asking.uri, token).whoami()

    assert answer.status == 200
    assert (answer.body["name"], answer.body["user-type"]) == ("service-account-lightweight", "application")
    assert caller(token=token).whoami().status == 401  # a server that does not ask sees no audience


@pytest.mark.parametrize("scope", [None, "elsewhere"], ids=["no-audience", "another-audience"])
def test_token_without_our_audience_is_refused(asking: LakewardenServer, realm: Realm, scope: str | None) -> None:
    assert Caller(asking.uri, realm.client_token("spark", scope=scope)).whoami().status == 401


@pytest.mark.parametrize("token", ["nonsense", "5f2b7b1e-opaque.as-can-be"])
def test_opaque_token_that_keycloak_does_not_know_is_refused(asking: LakewardenServer, token: str) -> None:
    assert Caller(asking.uri, token).whoami().status == 401


def test_keycloak_hangs_and_only_new_tokens_wait_for_it(
    keycloak: Keycloak, asking: LakewardenServer, realm: Realm, alice: Caller
) -> None:
    new = Caller(asking.uri, realm.client_token("operator"))
    time.sleep(RECHECK_S)  # alice's is due to be asked about
    with keycloak.frozen():
        began = time.monotonic()
        known = alice.whoami()
        seconds = time.monotonic() - began
        refused = new.whoami()

    assert (known.status, refused.status) == (200, 503)
    assert seconds < 1
    assert int(refused.headers["retry-after"]) >= 1
