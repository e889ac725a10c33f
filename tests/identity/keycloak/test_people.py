"""People who sign in at Keycloak, by code with PKCE and on another device, as the server sees them."""

import time
from collections.abc import Mapping
from typing import Any

import requests

from tests.identity.keycloak.caller import claims_of
from tests.identity.keycloak.lane import CallerOf
from tests.identity.keycloak.sign_in import CLIENT, Browser, Verifier
from tests.servers.keycloak import Realm

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def test_whoami_after_authorization_code_with_pkce_is_the_person(
    caller: CallerOf, alice_tokens: dict[str, str]
) -> None:
    answer = caller(token=alice_tokens["access_token"]).whoami()

    assert answer.status == 200
    assert answer.body["id"] == f"oidc~{claims_of(alice_tokens['access_token'])['sub']}"
    assert answer.body["name"] == "Alice Adams"
    assert answer.body["email"] == "alice@example.org"
    assert answer.body["user-type"] == "human"


def test_refreshed_token_is_the_same_person(caller: CallerOf, realm: Realm, alice_tokens: dict[str, str]) -> None:
    refreshed = realm.tokens(grant_type="refresh_token", client_id=CLIENT, refresh_token=alice_tokens["refresh_token"])[
        "access_token"
    ]

    assert refreshed != alice_tokens["access_token"]
    assert caller(token=refreshed).whoami().body["name"] == "Alice Adams"


def test_whoami_after_device_flow_is_the_person(caller: CallerOf, realm: Realm) -> None:
    verifier = Verifier()
    status, device = realm.ask("auth/device", {"client_id": CLIENT, **verifier.challenge})
    assert status == 200, device
    redeem = {
        "grant_type": DEVICE_GRANT,
        "client_id": CLIENT,
        "device_code": device["device_code"],
        "code_verifier": verifier.secret,
    }
    assert realm.ask("token", redeem)[1]["error"] == "authorization_pending"

    with requests.Session() as session:
        browser = Browser(realm, session)
        consent = browser.sign_in(browser.open(device["verification_uri_complete"]), "bob")
        browser.submit(consent, accept="Yes")

    answer = caller(token=_redeemed(realm, redeem)["access_token"]).whoami()
    assert (answer.body["name"], answer.body["user-type"]) == ("Bob Brown", "human")


def _redeemed(realm: Realm, form: Mapping[str, str]) -> dict[str, Any]:
    """What the device gets when it asks as often as it may (RFC 8628 section 3.5)."""
    deadline = time.monotonic() + 30
    while True:
        status, body = realm.ask("token", form)
        if status == 200 or time.monotonic() > deadline:
            assert status == 200, body
            return body
        assert body["error"] in {"authorization_pending", "slow_down"}
        time.sleep(1)
