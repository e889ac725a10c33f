"""Signs and reads the issuer's JWTs (RFC 9068); the key lives in signing-key.json."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

import time
from collections.abc import Callable
from typing import Any, Final

from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, RSAKey

from standalone.issuer.clients import Client
from standalone.issuer.issued_tokens import OpaqueTokens, RevokedTokens
from standalone.issuer.state import JsonObject, StateDir
from standalone.issuer.users import DevUser

SIGNING_KEY_FILE: Final = "signing-key.json"
AUDIENCE: Final = "lakewarden"

_ACCESS_TOKEN_TYPE: Final = "at+jwt"  # noqa: S105 - a type's name


def signing_keys(state: StateDir) -> KeySet:
    """Return the issuer's private key set: the stored RSA key, which is created if it is missing."""
    with state.locked():
        stored = state.read(SIGNING_KEY_FILE)
        if stored is None:
            created = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
            stored = dict(created.as_dict(private=True))
            state.write(SIGNING_KEY_FILE, stored)
    return KeySet([RSAKey.import_key(stored)])


class AccessTokens(JWTBearerTokenGenerator):
    """Generates token responses, and reads back the access tokens of this issuer."""

    def __init__(
        self, *, issuer: str, keys: KeySet, lifetime_s: int, new_refresh_token: Callable[..., str], state: StateDir
    ) -> None:
        super().__init__(issuer, refresh_token_generator=new_refresh_token, expires_generator=lifetime_s)
        self._keys = keys
        self._opaque = OpaqueTokens(state)
        self._revoked = RevokedTokens(state)

    def get_jwks(self) -> KeySet:
        return self._keys

    def get_audiences(self, _client: Client, _user: DevUser | None, _scope: str) -> str:
        return AUDIENCE

    def get_extra_claims(self, client: Client, _grant: str, user: DevUser | None, _scope: str) -> JsonObject:
        roles = client.roles if user is None else user.roles
        described = {} if user is None else user.claims()
        return {"azp": client.client_id} | described | ({"roles": list(roles)} if roles else {})

    def access_token_generator(self, client: Client, grant_type: str, user: DevUser | None, scope: str) -> str:
        token: str = super().access_token_generator(client, grant_type, user, scope)
        if client.token_format != "opaque":  # noqa: S105 - a format's name
            return token
        return self._opaque.hand_out(token, expires_at=time.time() + self.expires_generator)

    def read(self, token: str, *, accept_expired: bool = False) -> JsonObject | None:
        """Return the claims of an access token of this issuer; None if it is invalid, expired or revoked."""
        try:
            decoded = jwt.decode(self._opaque.find(token) or token, self._keys, algorithms=["RS256"])
            options: dict[str, Any] = {
                "iss": {"essential": True, "value": self.issuer},
                "aud": {"essential": True, "value": AUDIENCE},
                "exp": {"essential": True},
            }
            leeway = 10**9 if accept_expired else 0
            jwt.JWTClaimsRegistry(leeway=leeway, **options).validate(decoded.claims)
        except (JoseError, ValueError, RecursionError):
            return None
        is_valid = decoded.header.get("typ") == _ACCESS_TOKEN_TYPE and not self._revoked.holds(decoded.claims["jti"])
        return decoded.claims if is_valid else None

    def revoke(self, claims: JsonObject) -> None:
        """Revoke the token with these claims."""
        self._revoked.add(claims["jti"], expires_at=claims["exp"])
