"""Claims about users: id_tokens (OpenID Connect Core 1.0) and user info."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

from typing import Any

from authlib.oauth2.rfc6749 import OAuth2Request
from authlib.oidc.core import OpenIDCode, OpenIDToken
from joserfc.jwk import KeySet

from standalone.issuer.clients import Client
from standalone.issuer.users import DevUser


class IdToken(OpenIDToken):
    """Adds an id_token if the scope `openid` was granted (OpenID Connect Core 1.0, section 2)."""

    def __init__(self, *, issuer: str, keys: KeySet) -> None:
        self._issuer = issuer
        self._keys = keys

    def resolve_client_private_key(self, _client: Client) -> KeySet:
        return self._keys

    def get_client_claims(self, client: Client) -> dict[str, Any]:
        return {"iss": self._issuer, "aud": [client.client_id]}

    def generate_user_info(self, user: DevUser, scope: str) -> dict[str, str]:
        return user_info(user, scope)


class IdTokenForCode(IdToken, OpenIDCode):
    """Like the base class, with the checks of authorization requests in the code flow."""

    require_nonce = False

    def exists_nonce(self, _nonce: str, _request: OAuth2Request) -> bool:
        """Always False: the client detects replays, because it knows the nonce that it sent."""
        return False


def user_info(user: DevUser, scope: str) -> dict[str, str]:
    """Return the claims about a user that the scopes `profile` and `email` allow (section 5.4)."""
    granted, claims = scope.split(), user.claims()
    opened = {"name": "profile", "preferred_username": "profile", "email": "email"}
    return {"sub": user.subject} | {name: value for name, value in claims.items() if opened[name] in granted}
