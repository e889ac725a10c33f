"""Verifies the signed access tokens (JWT, RFC 9068) of one OpenID provider; built by chain.py."""

from collections.abc import Callable
from dataclasses import replace

from lakewarden.authn.bearer import peek
from lakewarden.authn.claim_checks import INACTIVE, verify_claims
from lakewarden.authn.discovery import discovered_address
from lakewarden.authn.json_fetch import FetchJson
from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.authn.provider_keys import ProviderKeys
from lakewarden.authn.remote_verification import RemoteVerification
from lakewarden.authn.signatures import SignedClaims, signed_claims
from lakewarden.authn.verified_token import seconds, verified_token_of
from lakewarden.authn.verifier import Verified
from lakewarden.errors import NotAuthorized


class SignedTokens:
    """A `Verifier` by the provider's published keys; it does not call the provider for each token."""

    recheck_after_s: float | None = None
    max_missed_rechecks = 0

    def __init__(self, provider: OidcProvider, keys: ProviderKeys, *, now: Callable[[], float]) -> None:
        self._provider = provider
        self._keys = keys
        self._now = now

    def stamp(self) -> int:
        self._keys.renew_if_old()
        return self._keys.generation

    def verify(self, token: str, *, again: bool = False) -> Verified:  # noqa: ARG002 verification is always local
        """See `Verifier.verify`."""
        return self.accept(self.signed(token))

    def signed(self, token: str) -> SignedClaims:
        """Verify the signature and return the claims; raises what `signed_claims` raises."""
        return signed_claims(peek(token), self._keys)

    def accept(self, signed: SignedClaims) -> Verified:
        """Apply the provider's rules to claims; raises NotAuthorized if one is not met."""
        claims = signed.claims
        verify_claims(claims, self._provider.rules, now=self._now)
        expires_at = seconds(claims["exp"])
        verified = verified_token_of(claims, self._provider, expires_at=expires_at)
        return Verified(verified, expires_at + self._provider.clock_skew_s, stamp=signed.generation)


class RevocableTokens:
    """A `Verifier` of signed tokens that also asks the provider whether they are still active (RFC 7662).

    The provider's answer has precedence over the token's claims, which may be few (lightweight access tokens).
    """

    def __init__(
        self,
        provider: OidcProvider,
        introspection: Introspection,
        *,
        signed: SignedTokens,
        verification: RemoteVerification,
        now: Callable[[], float],
    ) -> None:
        self._signed = signed
        self._verification = verification
        self._now = now
        # audience and scope are checked later, because they may be only in the provider's answer
        self._outer_rules = replace(provider.rules, audiences=(), scope=None)
        self.recheck_after_s: float | None = introspection.recheck_after_s
        self.max_missed_rechecks = introspection.max_missed_rechecks

    def stamp(self) -> int:
        return self._signed.stamp()

    def verify(self, token: str, *, again: bool = False) -> Verified:
        """See `Verifier.verify`. The provider is asked only about tokens that it signed and that have not expired."""
        claims, generation = self._signed.signed(token)
        verify_claims(claims, self._outer_rules, now=self._now)
        answer = self._verification.verdict(token, again=again)
        if answer is None:
            raise NotAuthorized(INACTIVE)
        return self._signed.accept(SignedClaims(claims | answer, generation))


def jwks_address(provider: OidcProvider, fetch: FetchJson) -> Callable[[], str]:
    """A function that returns the address of the provider's keys: configured, or found by discovery."""
    return lambda: provider.jwks_uri or discovered_address(provider, "jwks_uri", fetch=fetch)
