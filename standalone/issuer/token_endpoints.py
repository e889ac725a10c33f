"""Introspection (RFC 7662) and revocation (RFC 7009) at the development issuer; registered by provider.py."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

from dataclasses import dataclass
from typing import TYPE_CHECKING

from authlib.oauth2.rfc6749 import OAuth2Request, TokenMixin
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint

from standalone.issuer.browser_grants import ANY_CLIENT
from standalone.issuer.clients import Client
from standalone.issuer.machine_grants import SECRET_METHODS
from standalone.issuer.refresh_tokens import RefreshToken
from standalone.issuer.state import JsonObject

if TYPE_CHECKING:
    from standalone.issuer.provider import Provider


@dataclass(frozen=True, slots=True)
class AccessToken(TokenMixin):
    """A valid access token of this issuer; others are not found."""

    claims: JsonObject

    def check_client(self, client: Client) -> bool:
        return bool(self.claims["client_id"] == client.client_id)

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return False


class Introspect(IntrospectionEndpoint):
    """Every client with a secret may introspect every access token; refresh tokens are reported as inactive."""

    CLIENT_AUTH_METHODS = SECRET_METHODS
    server: "Provider"

    def query_token(self, token: str, _hint: str | None) -> AccessToken | None:
        claims = self.server.tokens.read(token)
        return None if claims is None else AccessToken(claims)

    def check_permission(self, _token: AccessToken, _client: Client, _request: OAuth2Request) -> bool:
        return True

    def introspect_token(self, token: AccessToken) -> JsonObject:
        return token.claims | {"token_type": "Bearer"}


class Revoke(RevocationEndpoint):
    """A client may revoke its own tokens; revoking a refresh token revokes all tokens of the same sign-in."""

    CLIENT_AUTH_METHODS = ANY_CLIENT
    server: "Provider"

    def query_token(self, token: str, _hint: str | None) -> AccessToken | RefreshToken | None:
        claims = self.server.tokens.read(token)
        return self.server.refresh_tokens.find(token) if claims is None else AccessToken(claims)

    def revoke_token(self, token: AccessToken | RefreshToken, _request: OAuth2Request) -> None:
        if isinstance(token, RefreshToken):
            self.server.refresh_tokens.revoke(token)
        else:
            self.server.tokens.revoke(token.claims)
