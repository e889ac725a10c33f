"""The authenticator: routes each bearer token to the verifier that is responsible for it; built by backends.py."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lakewarden.authn.bearer import UnverifiedToken, digest_of, is_opaque, peek, token_of
from lakewarden.authn.claim_checks import UNKNOWN_ISSUER, WRONG_AUDIENCE
from lakewarden.authn.fair_share import FairShare
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authn.introspection import IntrospectionEndpoint
from lakewarden.authn.json_fetch import FetchJson, PostJson, fetch_json, post_json
from lakewarden.authn.known_tokens import KnownTokens
from lakewarden.authn.oidc import RevocableTokens, SignedTokens, jwks_address
from lakewarden.authn.opaque import OpaqueTokens, verify_by_first
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.provider_keys import ProviderKeys, RefreshLimits
from lakewarden.authn.refused_tokens import RefusedTokens
from lakewarden.authn.remote_verification import RemoteVerification, RemoteVerificationLimits
from lakewarden.authn.signatures import ensure_accepted_algorithm
from lakewarden.authn.verifier import Verified, Verifier
from lakewarden.errors import NotAuthorized


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The network, clocks and limits that verifiers use. Tests replace them."""

    fetch: FetchJson = fetch_json
    post: PostJson = post_json
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    key_limits: RefreshLimits = field(default_factory=RefreshLimits)
    verification_limits: RemoteVerificationLimits = field(default_factory=RemoteVerificationLimits)


@dataclass(frozen=True, slots=True)
class _Trusted:
    provider: OidcProvider
    signed: Verifier
    opaque: OpaqueTokens | None


class AuthenticatorChain:
    """An `Authenticator` for bearer tokens of OpenID providers and of Kubernetes service accounts.

    The provider with the id `oidc` comes first, then the others by id, then the cluster. A signed token goes to the
    first provider that trusts its issuer and accepts its audience; an opaque one goes to the providers with
    introspection, one after the other, until one reports it as active. The decision of that provider is final: no
    other one is tried after a failed validation.
    """

    def __init__(
        self,
        providers: Iterable[OidcProvider],
        *,
        cluster: Verifier | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        around = surroundings or Surroundings()
        self._refusals = RefusedTokens(monotonic=around.monotonic)
        self._known = KnownTokens(now=around.now, monotonic=around.monotonic)
        ordered = sorted(providers, key=lambda each: (each.id != "oidc", each.id))
        self._trusted = [_trusted(provider, around) for provider in ordered]
        self._opaque = [each.opaque for each in self._trusted if each.opaque is not None]
        self._cluster = cluster
        self._shares = FairShare()

    def authenticate(self, authorization: str | None, *, source: str = "") -> VerifiedToken:
        """See `Authenticator.authenticate`."""
        token = token_of(authorization)
        known = self._known.find(token, may_wait=True)
        if known is not None:
            return known
        verifier, verified = self._verified(token, source)
        self._known.add(token, verified, verifier)
        return verified.token

    def find_known(self, authorization: str | None) -> VerifiedToken | None:
        """See `Authenticator.find_known`."""
        return self._known.find(token_of(authorization), may_wait=False)

    def mark_of(self, authorization: str) -> bytes:
        """See `Authenticator.mark_of`."""
        return digest_of(token_of(authorization))

    def find_marked(self, mark: bytes) -> VerifiedToken | None:
        """See `Authenticator.find_marked`."""
        return self._known.find_fresh(mark)

    def _verified(self, token: str, source: str) -> tuple[Verifier, Verified]:
        if is_opaque(token) and self._opaque:
            return self._asked(token, source, lambda: verify_by_first(self._opaque, token))
        verifier = self._route(peek(token))
        if verifier.recheck_after_s is None:
            return verifier, verifier.verify(token)
        return self._asked(token, source, lambda: (verifier, verifier.verify(token)))

    def _asked(
        self, token: str, source: str, ask: Callable[[], tuple[Verifier, Verified]]
    ) -> tuple[Verifier, Verified]:
        self._refusals.ensure_none(token)
        try:
            with self._shares.of(source):
                return ask()
        except NotAuthorized as error:
            self._refusals.remember(token, error)
            raise

    def _route(self, token: UnverifiedToken) -> Verifier:
        ensure_accepted_algorithm(token)
        candidates = [each for each in self._trusted if each.provider.trusts(token.issuer)]
        for candidate in candidates:
            if candidate.provider.accepts(token.audiences):
                return candidate.signed
        if candidates:
            raise NotAuthorized(WRONG_AUDIENCE)
        if self._cluster is not None and token.is_service_account:
            return self._cluster
        raise NotAuthorized(UNKNOWN_ISSUER)


def _trusted(provider: OidcProvider, around: Surroundings) -> _Trusted:
    keys = ProviderKeys(
        jwks_address=jwks_address(provider, around.fetch),
        fetch=around.fetch,
        limits=around.key_limits,
        monotonic=around.monotonic,
    )
    signed = SignedTokens(provider, keys, now=around.now)
    introspection = provider.introspection
    if introspection is None:
        return _Trusted(provider, signed, None)
    endpoint = IntrospectionEndpoint(provider, introspection, fetch=around.fetch, post=around.post)
    verification = RemoteVerification(endpoint.ask, limits=around.verification_limits, monotonic=around.monotonic)
    opaque = OpaqueTokens(provider, introspection, verification=verification, now=around.now)
    if not introspection.all_tokens:
        return _Trusted(provider, signed, opaque)
    revocable = RevocableTokens(provider, introspection, signed=signed, verification=verification, now=around.now)
    return _Trusted(provider, revocable, opaque)
