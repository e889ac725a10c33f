"""Keycloak changes its signing keys while the server runs and callers hold tokens."""

import time

import pytest

from tests.identity.keycloak.caller import Caller, header_of
from tests.identity.keycloak.rotation import (
    LIMITS,
    add_signing_key,
    seconds_until_accepted,
    withdraw_older_keys,
)
from tests.servers.keycloak import Keycloak, Realm
from tests.servers.lakewarden_serve import LakewardenServer


@pytest.fixture
def holder(lakewarden: LakewardenServer, partner: Realm) -> Caller:
    """A caller of the realm `partner` whose token the server has verified."""
    caller = Caller(lakewarden.uri, partner.client_token("other-tenant"))
    seconds_until_accepted(caller)
    return caller


def test_token_by_a_new_key_is_accepted_at_once_and_older_tokens_stay_good(
    lakewarden: LakewardenServer, keycloak: Keycloak, partner: Realm, holder: Caller
) -> None:
    time.sleep(LIMITS.unknown_key)  # keys that were fetched a moment ago are not fetched again for an unknown one
    add_signing_key(keycloak, "partner")
    fresh = Caller(lakewarden.uri, partner.client_token("other-tenant"))

    assert header_of(fresh.token)["kid"] != header_of(holder.token)["kid"]
    assert fresh.whoami().status == 200
    assert holder.whoami().status == 200


def test_token_by_a_withdrawn_key_is_refused_as_soon_as_the_server_sees_the_new_key(
    lakewarden: LakewardenServer, keycloak: Keycloak, partner: Realm, holder: Caller
) -> None:
    """A server that sees no new key looks every `RefreshLimits.max_age` seconds."""
    add_signing_key(keycloak, "partner")
    withdraw_older_keys(keycloak, "partner")
    assert holder.whoami().status == 200

    waited = seconds_until_accepted(Caller(lakewarden.uri, partner.client_token("other-tenant")))

    assert waited <= LIMITS.unknown_key + 1
    assert holder.whoami().error == (
        401,
        "The token is signed with a key that its issuer does not publish: get a new token.",
    )
