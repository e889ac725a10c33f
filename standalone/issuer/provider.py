"""The OAuth 2.0 and OpenID Connect rules of the development issuer, on authlib; its HTTP side is site.py."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

from typing import Final

from authlib.integrations.django_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidScopeError, OAuth2Error, OAuth2Request
from django.http import HttpResponse

from standalone.issuer.access_tokens import AccessTokens, signing_keys
from standalone.issuer.browser_grants import CodeGrant, ProofKey, RefreshGrant
from standalone.issuer.clients import SCOPES, Client, Clients
from standalone.issuer.device_grant import DeviceEndpoint, DeviceGrant
from standalone.issuer.id_tokens import IdToken, IdTokenForCode
from standalone.issuer.machine_grants import MachineGrant, TokenExchangeGrant
from standalone.issuer.pending import Pending, PendingCode, PendingDevice
from standalone.issuer.refresh_tokens import RefreshTokens
from standalone.issuer.seed import DEVICE_CODE_GRANT, TOKEN_EXCHANGE_GRANT
from standalone.issuer.state import JsonObject, StateDir
from standalone.issuer.token_endpoints import Introspect, Revoke
from standalone.issuer.users import Users

_WRONG: Final = "The client id or the client secret is wrong: compare them with the credential that you were given."
_MISSING: Final = "The client did not authenticate: send client_id and client_secret, in the form or as HTTP Basic."

_GRANTS: Final = (
    "authorization_code",
    "client_credentials",
    "refresh_token",
    DEVICE_CODE_GRANT,
    TOKEN_EXCHANGE_GRANT,
)
_WORDS: Final = {
    "unsupported_grant_type": f"This issuer knows the grant types: {', '.join(_GRANTS)}.",
    "unauthorized_client": "This client may not do that.",
    "authorization_pending": "Nobody has confirmed the code yet: ask again after the interval.",
    "slow_down": "Asked too soon: wait 5 seconds longer between two requests.",
    "invalid_request": "A parameter is missing or is given twice: compare the request with the protocol.",
    "invalid_grant": "The token belongs to another client.",
    "unsupported_token_type": "token_type_hint must be access_token or refresh_token, or be left out.",
    "expired_token": "The device code has expired: start again.",
}


class Provider(AuthorizationServer):
    """authlib's authorization server with this issuer's clients, users, codes and tokens. Thread-safe."""

    def __init__(self, *, issuer: str, state: StateDir, token_lifetime_s: int) -> None:
        super().__init__(client_model=None, token_model=None)
        self.scopes_supported = SCOPES
        self.issuer = issuer
        self.clients = Clients(state)
        self.users = Users(state)
        self.codes: Pending[PendingCode] = Pending()
        self.devices: Pending[PendingDevice] = Pending()
        self.refresh_tokens = RefreshTokens(state)
        self.keys = signing_keys(state)
        self.tokens = AccessTokens(
            issuer=issuer,
            keys=self.keys,
            lifetime_s=token_lifetime_s,
            new_refresh_token=self.refresh_tokens.new,
            state=state,
        )
        self._register()

    def _register(self) -> None:
        id_token = IdToken(issuer=self.issuer, keys=self.keys)
        self.register_token_generator("default", self.tokens)
        self.register_grant(MachineGrant)
        self.register_grant(TokenExchangeGrant)
        self.register_grant(CodeGrant, [ProofKey(), IdTokenForCode(issuer=self.issuer, keys=self.keys)])
        self.register_grant(RefreshGrant, [id_token])
        self.register_grant(DeviceGrant, [id_token])
        self.register_endpoint(DeviceEndpoint)
        self.register_endpoint(Introspect)
        self.register_endpoint(Revoke)

    def query_client(self, client_id: str) -> Client | None:
        return self.clients.find(client_id)

    def authenticate_client(self, request: OAuth2Request, methods: list[str], endpoint: str = "token") -> Client:
        """Authenticate like authlib, but with a readable message that is the same for each cause.

        Raises:
            InvalidClientError: 401 (RFC 6749 section 5.2).

        """
        try:
            client: Client = super().authenticate_client(request, methods, endpoint)
        except (InvalidClientError, UnicodeDecodeError) as error:
            has_sent = "Authorization" in request.headers or request.form.get("client_secret")
            raise InvalidClientError(_WRONG if has_sent else _MISSING, status_code=401) from error
        return client

    def validate_requested_scope(self, scope: str | None) -> None:
        if set((scope or "").split()).difference(SCOPES):
            raise InvalidScopeError(f"An unknown scope was asked for; this issuer knows: {' '.join(SCOPES)}.")

    def handle_error_response(self, request: object, error: OAuth2Error) -> HttpResponse:
        """Render an error (RFC 6749 section 5.2), always with a description for people."""
        error.description = error.description or _WORDS.get(error.error, "")
        response: HttpResponse = super().handle_error_response(request, error)
        return response

    def save_token(self, token: JsonObject, request: OAuth2Request) -> None:
        """Store a refresh token; access tokens need not be stored, because they are self-contained."""
        if "refresh_token" not in token:
            return
        before = request.refresh_token
        self.refresh_tokens.add(
            token["refresh_token"],
            client_id=request.client.client_id,
            subject=request.user.subject,
            scope=token["scope"],
            family=None if before is None else before.family,
        )

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Does nothing: authlib's signals are not used."""

    def device_of(self, user_code: str) -> PendingDevice | None:
        """Return the waiting device for a code that a user entered; case, blanks and dashes are ignored."""
        typed = "".join(character for character in user_code.upper() if character.isalnum())
        device = self.devices.search(lambda each: each.user_code.replace("-", "") == typed)
        return None if device is None or device.is_expired() else device

    def metadata(self) -> JsonObject:
        """OpenID Connect Discovery 1.0 section 3, RFC 8414, RFC 8628 section 4."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "introspection_endpoint": f"{self.issuer}/introspect",
            "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "revocation_endpoint": f"{self.issuer}/revoke",
            "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            "device_authorization_endpoint": f"{self.issuer}/device_authorization",
            "end_session_endpoint": f"{self.issuer}/logout",
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(_GRANTS),
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            "code_challenge_methods_supported": ["S256"],
            "claims_supported": ["sub", "iss", "aud", "exp", "iat", "name", "preferred_username", "email"],
        }
