"""Keycloak's signing keys, changed through its admin REST API in the middle of a run; for the tests of this lane."""

import time
from typing import Any

from lakewarden.authn.provider_keys import RefreshLimits
from tests.identity.keycloak.caller import Caller
from tests.servers.keycloak import Keycloak

LIMITS = RefreshLimits()
_KIND = "org.keycloak.keys.KeyProvider"


def add_signing_key(keycloak: Keycloak, realm: str) -> None:
    """A new RSA key that signs from now on; those before it are published as they were."""
    priority = 100 + len(_signing_keys(keycloak, realm))
    keycloak.admin(
        "POST",
        f"/{realm}/components",
        {
            "name": f"rsa-{priority}",
            "providerId": "rsa-generated",
            "providerType": _KIND,
            "config": {"priority": [str(priority)], "enabled": ["true"], "active": ["true"], "keySize": ["2048"]},
        },
    )


def withdraw_older_keys(keycloak: Keycloak, realm: str) -> None:
    """Disable all signing keys but the newest: they are not published any more."""
    for key in _signing_keys(keycloak, realm)[:-1]:
        config = key["config"] | {"enabled": ["false"], "active": ["false"]}
        keycloak.admin("PUT", f"/{realm}/components/{key['id']}", key | {"config": config})


def seconds_until_accepted(caller: Caller) -> float:
    """How long the server refuses the token until it accepts it, at most a second more than the limits say."""
    began = time.monotonic()
    while (answer := caller.whoami()).status != 200:
        assert time.monotonic() - began < LIMITS.unknown_key + 1, answer
        time.sleep(0.1)
    return time.monotonic() - began


def _signing_keys(keycloak: Keycloak, realm: str) -> list[dict[str, Any]]:
    """Oldest first: each was made with a higher priority than those before it."""
    found = keycloak.admin("GET", f"/{realm}/components?type={_KIND}")
    keys = [key for key in found if key["providerId"] == "rsa-generated"]
    return sorted(keys, key=lambda key: int(key["config"].get("priority", ["0"])[0]))
