"""Signs people in at the OpenID provider: authorization code with PKCE (RFC 6749 section 4.1, RFC 7636)."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import msgspec
import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from cachetools import TTLCache, cached

from console.services.sessions import Tokens
from lakewarden import config
from lakewarden.authn import provider_settings
from lakewarden.authn.discovery import discovered_address
from lakewarden.authn.json_fetch import FetchFailed, fetch_json
from lakewarden.authn.provider import OidcProvider
from lakewarden.errors import BadRequest, Forbidden, Unavailable

_TIMEOUT_S: Final = 5.0
_REMEMBERED_S: Final = 600  # addresses of the discovery document
_LIFETIME_S: Final = 300
"""Assumed for an access token whose lifetime the provider does not tell (RFC 6749 section 5.1 only recommends it)."""


class SignInOff(BadRequest):
    """No client is configured for the console."""


class Attempt(msgspec.Struct, frozen=True):
    """What the browser keeps while its user is at the provider. `next_page` is a path of the console."""

    state: str
    verifier: str
    next_page: str


@dataclass(frozen=True, slots=True)
class Departure:
    """`address` is the provider's, where the user signs in."""

    address: str
    attempt: Attempt


def is_on() -> bool:
    return config.current().console.client_id is not None


def depart(*, redirect_uri: str, next_page: str) -> Departure:
    """Begin to sign in. Raises SignInOff; Unavailable if the provider does not say where."""
    attempt = Attempt(state=secrets.token_urlsafe(24), verifier=secrets.token_urlsafe(48), next_page=next_page)
    with _client(redirect_uri) as client:
        address, _ = client.create_authorization_url(
            _address("authorization_endpoint"), state=attempt.state, code_verifier=attempt.verifier
        )
    return Departure(address, attempt)


def arrive(query: Mapping[str, str], attempt: Attempt, *, redirect_uri: str) -> Tokens:
    """The tokens for the code in the address to which the provider has sent the browser back.

    Raises:
        BadRequest: the answer belongs to another attempt, or its code is not valid any more.
        Forbidden: the provider says that the user was not signed in.
        Unavailable: the provider does not answer.

    """
    if not secrets.compare_digest(query.get("state", "").encode(), attempt.state.encode()):
        raise BadRequest("This answer belongs to another attempt to sign in: sign in again")
    if error := query.get("error"):
        raise Forbidden(f"The identity provider did not sign you in ({_said(error, query.get('error_description'))})")
    if not query.get("code"):
        raise BadRequest("The identity provider sent no code: sign in again")
    with _client(redirect_uri) as client:
        found = _exchanged(
            lambda: client.fetch_token(
                _address("token_endpoint"), code=query["code"], code_verifier=attempt.verifier, timeout=_TIMEOUT_S
            )
        )
    if found is None:
        raise BadRequest("The identity provider did not accept the code, which can be used once and soon: try again")
    return found


def known_token_endpoint() -> dict[str, str]:
    """The provider's token endpoint as `token_endpoint`; nothing if no provider is configured, or it is silent."""
    if len(config.current().openid) != 1 and config.current().console.provider is None:
        return {}
    try:
        return {"token_endpoint": _address("token_endpoint")}
    except Unavailable:
        return {}


def refreshed(token: str) -> Tokens | None:
    """New tokens for a refresh token (RFC 6749 section 6); None if it is not accepted. Raises Unavailable."""
    with _client(None) as client:
        return _exchanged(
            lambda: client.refresh_token(_address("token_endpoint"), refresh_token=token, timeout=_TIMEOUT_S)
        )


def sign_out_address(tokens: Tokens, *, back: str) -> str | None:
    """Where the user ends their session at the provider (OpenID Connect RP-Initiated Logout 1.0, section 2).

    None if the provider has no such address, or cannot be asked.
    """
    try:
        address = _address("end_session_endpoint")
    except Unavailable:
        return None
    asked = {"post_logout_redirect_uri": back, "client_id": config.current().console.client_id or ""}
    if tokens.identity is not None:
        asked["id_token_hint"] = tokens.identity
    return requests.Request("GET", address, params=asked).prepare().url


def _exchanged(ask: Any) -> Tokens | None:  # noqa: ANN401 authlib carries no types
    try:
        answer = ask()
    except OAuthError:
        return None
    except (requests.RequestException, ValueError) as error:
        raise _unavailable(error) from error
    return Tokens(
        access=answer["access_token"],
        lifetime_s=int(answer.get("expires_in") or _LIFETIME_S),
        refresh=answer.get("refresh_token"),
        identity=answer.get("id_token"),
    )


def _client(redirect_uri: str | None) -> OAuth2Session:
    settings = config.current().console
    if settings.client_id is None:
        raise SignInOff("Nobody can sign in: the server has no client at an identity provider (console.client_id)")
    secret = None if settings.client_secret is None else settings.client_secret.get_secret_value()
    return OAuth2Session(
        settings.client_id,
        secret,
        token_endpoint_auth_method="none" if secret is None else "client_secret_basic",
        scope=settings.scope,
        redirect_uri=redirect_uri,
        code_challenge_method="S256",
    )


def _provider() -> OidcProvider:
    settings = config.current()
    name = settings.console.provider or next(iter(settings.openid))
    return provider_settings.provider(name, settings.openid[name])


@cached(TTLCache(maxsize=16, ttl=_REMEMBERED_S), lock=Lock())
def _address(name: str) -> str:
    try:
        return discovered_address(_provider(), name, fetch=fetch_json)
    except FetchFailed as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"The identity provider cannot be asked now: {error}. Try again in a minute")


def _said(error: str, description: str | None) -> str:
    return f"{error[:80]}: {description[:200]}" if description else error[:80]
