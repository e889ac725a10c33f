"""Grants for users in a browser: authorization code with PKCE, and refresh; registered by provider.py."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

import time
from typing import TYPE_CHECKING, Any, Final

from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidRequestError, OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc7636 import CodeChallenge

from standalone.issuer.clients import Client
from standalone.issuer.pending import CODE_LIFETIME_S, PendingCode
from standalone.issuer.refresh_tokens import RefreshToken
from standalone.issuer.users import DevUser

if TYPE_CHECKING:
    from standalone.issuer.provider import Provider

# public clients authenticate by PKCE, by the device code, or by a refresh token that can be used once
ANY_CLIENT: Final = ["none", "client_secret_basic", "client_secret_post"]

Response = tuple[int, Any, Any]


class CodeGrant(AuthorizationCodeGrant):
    """RFC 6749 section 4.1."""

    TOKEN_ENDPOINT_AUTH_METHODS = ANY_CLIENT
    server: "Provider"

    @staticmethod
    def validate_authorization_redirect_uri(request: OAuth2Request, client: Client) -> str:
        redirect_uri = request.payload.redirect_uri
        if not redirect_uri or not client.check_redirect_uri(redirect_uri):
            raise InvalidRequestError("redirect_uri must be an address of this machine: http://127.0.0.1:PORT/...")
        return str(redirect_uri)

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        asked = request.payload.data
        pending = PendingCode(
            client_id=request.client.client_id,
            redirect_uri=asked["redirect_uri"],
            scope=request.scope,
            subject=request.user.subject,
            nonce=asked.get("nonce"),
            auth_time=int(time.time()),
            code_challenge=asked["code_challenge"],
            code_challenge_method=asked["code_challenge_method"],
            expires_at=time.time() + CODE_LIFETIME_S,
        )
        self.server.codes.add(code, pending)

    def query_authorization_code(self, code: str, client: Client) -> PendingCode:
        """Redeem a code, which can be used only once."""
        pending = self.server.codes.take(code)
        if pending is None or pending.client_id != client.client_id or pending.expires_at <= time.time():
            raise InvalidGrantError("The authorization code is unknown, expired or already used: sign in again.")
        return pending

    def delete_authorization_code(self, authorization_code: PendingCode) -> None:
        """Does nothing: redeeming has removed the code."""

    def authenticate_user(self, authorization_code: PendingCode) -> DevUser | None:
        return self.server.users.find(authorization_code.subject)


class ProofKey(CodeChallenge):
    """RFC 7636, with S256 only; PKCE is required."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]

    def validate_code_challenge(self, grant: CodeGrant, redirect_uri: str) -> None:
        asked = grant.request.payload.data
        if not asked.get("code_challenge") or not asked.get("code_challenge_method"):
            raise InvalidRequestError("PKCE is required: send code_challenge and code_challenge_method=S256.")
        super().validate_code_challenge(grant, redirect_uri)


class RefreshGrant(RefreshTokenGrant):
    """RFC 6749 section 6, with rotation."""

    TOKEN_ENDPOINT_AUTH_METHODS = ANY_CLIENT
    INCLUDE_NEW_REFRESH_TOKEN = True
    server: "Provider"

    def authenticate_refresh_token(self, refresh_token: str) -> RefreshToken:
        entry = self.server.refresh_tokens.find(refresh_token)
        if entry is None:
            raise _refused_refresh()
        return entry

    def authenticate_user(self, refresh_token: RefreshToken) -> DevUser | None:
        return self.server.users.find(refresh_token.subject)

    def create_token_response(self) -> Response:
        if not self.server.refresh_tokens.use_up(self.request.refresh_token):
            raise _refused_refresh()
        response: Response = super().create_token_response()
        return response

    def revoke_old_credential(self, refresh_token: RefreshToken) -> None:
        """Does nothing: the token was marked as used before the new one was issued."""


def _refused_refresh() -> InvalidGrantError:
    return InvalidGrantError("The refresh token is unknown, expired or already used: sign in again.")
