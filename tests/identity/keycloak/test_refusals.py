"""Tokens of a real provider that are not for this server, or not genuine: 401, and nothing that helps an attacker."""

import pytest

from lakewarden.authn.claim_checks import UNKNOWN_ISSUER, WRONG_AUDIENCE
from tests.identity.keycloak.lane import CallerOf
from tests.servers.keycloak import Keycloak, KeycloakFailed, Realm


@pytest.mark.parametrize("scope", [None, "elsewhere"], ids=["no-audience", "another-audience"])
def test_token_without_our_audience_is_refused(caller: CallerOf, realm: Realm, scope: str | None) -> None:
    answer = caller(token=realm.client_token("spark", scope=scope)).whoami()

    assert answer.error == (401, WRONG_AUDIENCE)
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_token_of_an_untrusted_realm_with_our_audience_is_refused(caller: CallerOf, pond: Realm) -> None:
    answer = caller(token=pond.client_token("spark")).whoami()

    assert answer.error == (401, UNKNOWN_ISSUER)


def test_token_of_one_realm_renamed_to_another_is_refused(caller: CallerOf, realm: Realm, pond: Realm) -> None:
    """The signature covers the issuer: what `pond` signed cannot pass for `lake`."""
    genuine = realm.client_token("spark").split(".")
    foreign = pond.client_token("spark").split(".")

    answer = caller(token=f"{genuine[0]}.{genuine[1]}.{foreign[2]}").whoami()

    assert answer.error == (401, "The token's signature is not valid: get a new token.")


def test_token_with_one_changed_character_is_refused(caller: CallerOf, realm: Realm) -> None:
    header, payload, signature = realm.client_token("spark").split(".")
    changed = ("A" if signature[10] != "A" else "B").join((signature[:10], signature[11:]))

    assert caller(token=f"{header}.{payload}.{signature}").whoami().status == 200
    assert caller(token=f"{header}.{payload}.{changed}").whoami().status == 401


def test_refresh_token_is_no_access_token(caller: CallerOf, alice_tokens: dict[str, str]) -> None:
    answer = caller(token=alice_tokens["refresh_token"]).whoami()

    assert answer.status == 401


def test_id_token_is_no_access_token(caller: CallerOf, alice_tokens: dict[str, str]) -> None:
    """It is for the program that signed the person in: its audience is that client."""
    answer = caller(token=alice_tokens["id_token"]).whoami()

    assert answer.status == 401


def test_disabled_client_gets_no_token_and_the_one_that_it_has_lasts_until_it_expires(
    caller: CallerOf, keycloak: Keycloak, realm: Realm
) -> None:
    """A signed token speaks for itself: who wants Keycloak to be asked turns introspection on."""
    held = caller("other-tenant")
    (client,) = keycloak.admin("GET", "/lake/clients?clientId=other-tenant")
    keycloak.admin("PUT", f"/lake/clients/{client['id']}", {**client, "enabled": False})
    try:
        with pytest.raises(KeycloakFailed, match=r"400|401"):
            realm.client_token("other-tenant")
        assert held.whoami().status == 200
    finally:
        keycloak.admin("PUT", f"/lake/clients/{client['id']}", {**client, "enabled": True})
