"""Grants without a user: client credentials and token exchange; registered by provider.py."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

from typing import TYPE_CHECKING, Any, Final

from authlib.oauth2.rfc6749 import (
    BaseGrant,
    InvalidClientError,
    InvalidGrantError,
    InvalidRequestError,
    TokenEndpointMixin,
    UnauthorizedClientError,
)
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant

from standalone.issuer.clients import Client
from standalone.issuer.seed import TOKEN_EXCHANGE_GRANT

if TYPE_CHECKING:
    from standalone.issuer.provider import Provider

ACCESS_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type's name
_SUBJECT_TYPES: Final = (ACCESS_TOKEN_TYPE, "urn:ietf:params:oauth:token-type:jwt")
SECRET_METHODS: Final = ["client_secret_basic", "client_secret_post"]


class MachineGrant(ClientCredentialsGrant):
    """RFC 6749 section 4.4, with the secret in the header or in the form."""

    TOKEN_ENDPOINT_AUTH_METHODS = SECRET_METHODS


class TokenExchangeGrant(BaseGrant, TokenEndpointMixin):
    """RFC 8693 as Iceberg clients use it: to renew an access token.

    With `Authorization: Bearer <token>` both that token and `subject_token` must be valid and speak of the
    same subject. With client credentials an expired `subject_token` of the client itself will do as well.
    """

    GRANT_TYPE = TOKEN_EXCHANGE_GRANT
    TOKEN_ENDPOINT_AUTH_METHODS = SECRET_METHODS
    server: "Provider"

    def validate_token_request(self) -> None:
        form = self.request.form
        if form.get("subject_token_type") not in _SUBJECT_TYPES or not form.get("subject_token"):
            raise InvalidRequestError(f"Send subject_token and subject_token_type={ACCESS_TOKEN_TYPE}.")
        if form.get("actor_token"):
            raise InvalidRequestError("Actor tokens are not supported: leave actor_token out.")
        if form.get("requested_token_type", ACCESS_TOKEN_TYPE) != ACCESS_TOKEN_TYPE:
            raise InvalidRequestError(f"requested_token_type must be {ACCESS_TOKEN_TYPE} or left out.")
        scheme, _, bearer = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            self.request.client = self._client_of(bearer.strip(), form["subject_token"])
        else:
            self.request.client = self._client_with_secret(form["subject_token"])
        if not self.request.client.check_grant_type(self.GRANT_TYPE):
            raise UnauthorizedClientError("This client may not exchange tokens.")
        self.validate_requested_scope()

    def create_token_response(self) -> tuple[int, Any, Any]:
        token: dict[str, Any] = self.generate_token(
            user=self.request.user, scope=self.request.payload.scope, include_refresh_token=False
        )
        return 200, token | {"issued_token_type": ACCESS_TOKEN_TYPE}, self.TOKEN_RESPONSE_HEADER

    def _client_of(self, bearer: str, subject_token: str) -> Client:
        caller, subject = self.server.tokens.read(bearer), self.server.tokens.read(subject_token)
        if caller is None:
            raise InvalidClientError("The bearer token is not valid or has expired: get a new one.", status_code=401)
        if subject is None or (subject["sub"], subject["client_id"]) != (caller["sub"], caller["client_id"]):
            raise _refused()
        client = self.server.query_client(caller["client_id"])
        if client is None:
            raise _refused()
        self._set_user(subject, client)
        return client

    def _client_with_secret(self, subject_token: str) -> Client:
        client: Client = self.authenticate_token_endpoint_client()
        subject = self.server.tokens.read(subject_token)
        expired = self.server.tokens.read(subject_token, accept_expired=True)
        if subject is None and expired is not None and expired["sub"] == client.client_id:
            subject = expired
        if subject is None or subject["client_id"] != client.client_id:
            raise _refused()
        self._set_user(subject, client)
        return client

    def _set_user(self, subject: dict[str, Any], client: Client) -> None:
        """The new token has the subject of the old one, if that user still exists."""
        if subject["sub"] == client.client_id:
            return
        self.request.user = self.server.users.find(subject["sub"])
        if self.request.user is None:
            raise _refused()


def _refused() -> InvalidGrantError:
    return InvalidGrantError("The subject token is not valid, has expired or belongs to another client: sign in again.")
