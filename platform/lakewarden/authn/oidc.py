"""Authentication by OpenID Connect access tokens (JWT) of any providers; chosen by lakewarden.backends."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from joserfc import jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jws import JWSRegistry

from lakewarden.authn.bearer import UnverifiedToken, peek, token_of
from lakewarden.authn.claims import (
    CLOCK_SKEW_S,
    EXPIRED,
    UNKNOWN_ISSUER,
    WRONG_AUDIENCE,
    Claims,
    principal_of,
    verify_claims,
)
from lakewarden.authn.interface import Principal
from lakewarden.authn.json_fetch import FetchFailed, FetchJson, fetch_json
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.provider_keys import ProviderKeys, RefreshLimits
from lakewarden.authn.token_cache import TokenCache
from lakewarden.errors import NotAuthorized

__all__ = ["ALGORITHMS", "OidcAuthenticator", "OidcProvider"]

ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
_CACHED_TOKENS: Final = 10_000


class _AsymmetricAlgorithms(JWSRegistry):
    """Pinned to public-key signatures: `none` and HS* do not exist here, whatever a token says."""

    max_header_length = 4096

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(f"'{name}' is not an accepted signature algorithm")
        return self.algorithms[name]


_REGISTRY: Final = _AsymmetricAlgorithms(strict_check_header=False)


@dataclass(frozen=True, slots=True)
class _Trusted:
    provider: OidcProvider
    keys: ProviderKeys


@dataclass(frozen=True, slots=True)
class _Verified:
    principal: Principal
    keys: ProviderKeys


class OidcAuthenticator:
    """An `Authenticator` for JWT access tokens of the given providers.

    The provider named `oidc` is asked first, then the others by id. A token goes to the first provider
    that trusts its issuer and accepts its audience, and that one decides.
    """

    def __init__(
        self,
        providers: Iterable[OidcProvider],
        *,
        fetch: FetchJson = fetch_json,
        limits: RefreshLimits | None = None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self._cache: TokenCache[_Verified] = TokenCache(capacity=_CACHED_TOKENS)
        self._trusted = [
            _Trusted(
                provider,
                ProviderKeys(
                    jwks_address=_jwks_address(provider, fetch),
                    fetch=fetch,
                    on_change=self._cache.clear,
                    limits=limits or RefreshLimits(),
                    monotonic=monotonic,
                ),
            )
            for provider in sorted(providers, key=lambda each: (each.id != "oidc", each.id))
        ]

    def authenticate(self, authorization: str | None) -> Principal:
        """See `Authenticator.authenticate`."""
        token = token_of(authorization)
        digest = sha256(token.encode()).digest()
        return self._known(digest) or self._verify(peek(token), digest)

    def find_known(self, authorization: str | None) -> Principal | None:
        """See `Authenticator.find_known`."""
        return self._known(sha256(token_of(authorization).encode()).digest())

    def _known(self, digest: bytes) -> Principal | None:
        verified = self._cache.find(digest)
        if verified is None:
            return None
        if verified.principal.expires_at + CLOCK_SKEW_S <= self._now():
            self._cache.discard(digest)
            raise NotAuthorized(EXPIRED)
        verified.keys.renew_if_old()
        return verified.principal

    def _verify(self, token: UnverifiedToken, digest: bytes) -> Principal:
        if token.algorithm not in ALGORITHMS:
            raise NotAuthorized("The token is not signed with an accepted algorithm (RS*, PS*, ES* or EdDSA).")
        trusted = self._route(token)
        trusted.keys.find(token.key_id)  # fetches what is missing, which may clear the cache: count from here
        generation = self._cache.generation
        claims = _verified_claims(token, trusted.keys)
        verify_claims(claims, trusted.provider, now=self._now)
        principal = principal_of(claims, trusted.provider)
        self._cache.put(digest, _Verified(principal, trusted.keys), generation=generation)
        return principal

    def _route(self, token: UnverifiedToken) -> _Trusted:
        candidates = [each for each in self._trusted if each.provider.trusts(token.issuer)]
        if not candidates:
            raise NotAuthorized(UNKNOWN_ISSUER)
        for candidate in candidates:
            if candidate.provider.accepts_audience(token.audiences):
                return candidate
        raise NotAuthorized(WRONG_AUDIENCE)


def _verified_claims(token: UnverifiedToken, keys: ProviderKeys) -> Claims:
    key = keys.find(token.key_id)
    try:
        return jwt.decode(token.compact, key, registry=_REGISTRY).claims
    except (JoseError, ValueError, RecursionError) as error:
        raise NotAuthorized("The token's signature is not valid: get a new token.") from error


def _jwks_address(provider: OidcProvider, fetch: FetchJson) -> Callable[[], str]:
    """Where the keys are: configured, or found by OpenID Connect Discovery 1.0 (sections 4.1 to 4.3)."""

    def address() -> str:
        if provider.jwks_uri is not None:
            return provider.jwks_uri
        document = fetch(provider.discovery_uri)
        issuer, jwks_uri = document.get("issuer"), document.get("jwks_uri")
        if not isinstance(issuer, str) or not provider.trusts(issuer):
            raise FetchFailed(
                f"{provider.discovery_uri} describes the issuer '{issuer}', not '{provider.issuer}': correct"
                " the provider's issuer, or name the other one as an additional issuer"
            )
        if not isinstance(jwks_uri, str):
            raise FetchFailed(f"{provider.discovery_uri} names no 'jwks_uri'")
        return jwks_uri

    return address
