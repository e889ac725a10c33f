"""The tokens of an identity in Google Cloud."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from joserfc import jwt
from joserfc.jwk import RSAKey

from lakewarden.config import GcsConfig
from lakewarden.storage.bearer_tokens import BearerToken, BearerTokens, TokenService
from lakewarden.storage.gcs.credentials import GcpSystemIdentity, ServiceAccountKey

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
"""Tokens can be exchanged for those of one table only with this scope."""
_LIFE_S: Final = 3600
_MARGIN = timedelta(minutes=30)
"""Long, because the tokens of tables end together with the one that they were exchanged for."""


def tokens_of(
    credential: ServiceAccountKey | GcpSystemIdentity, *, settings: GcsConfig, timeout_s: float
) -> BearerTokens:
    if isinstance(credential, ServiceAccountKey):
        fetch = _by_key(TokenService("Google's token service", timeout_s=timeout_s), credential, settings)
    else:
        fetch = _by_machine(TokenService("The metadata server of Google Cloud", timeout_s=timeout_s), settings)
    return BearerTokens(fetch, margin=_MARGIN)


def _by_key(service: TokenService, credential: ServiceAccountKey, settings: GcsConfig) -> Callable[[], BearerToken]:
    """A signed assertion instead of a secret (RFC 7523)."""
    key = credential.fields()
    signing_key = RSAKey.import_key(key["private_key"])

    def fetch() -> BearerToken:
        now = int(time.time())
        claims = {
            "iss": key["client_email"],
            "scope": _SCOPE,
            "aud": settings.token_endpoint,
            "iat": now,
            "exp": now + _LIFE_S,
        }
        assertion = jwt.encode({"alg": "RS256", "kid": key["private_key_id"]}, claims, signing_key)
        form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        return service.ask("POST", settings.token_endpoint, form=form)

    return fetch


def _by_machine(machine: TokenService, settings: GcsConfig) -> Callable[[], BearerToken]:
    return lambda: machine.ask("GET", settings.identity_endpoint, headers={"Metadata-Flavor": "Google"})
