"""Verifies opaque tokens by introspection at their issuer (RFC 7662); built by chain.py."""

from collections.abc import Callable, Iterable
from typing import Final

from lakewarden.authn.claim_checks import INACTIVE, audiences_of, verify_claims
from lakewarden.authn.claim_path import Claims
from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.authn.remote_verification import RemoteVerification
from lakewarden.authn.verified_token import seconds, verified_token_of
from lakewarden.authn.verifier import UNDATED_S, Verified
from lakewarden.errors import NotAuthorized, Unavailable

_ACCESS_TOKEN_TYPES: Final = ("bearer", "access_token")  # RFC 6749 section 7.1; RFC 8693 names


class OpaqueTokens:
    """A `Verifier` by the provider's introspection endpoint."""

    def __init__(
        self,
        provider: OidcProvider,
        introspection: Introspection,
        *,
        verification: RemoteVerification,
        now: Callable[[], float],
    ) -> None:
        self._provider = provider
        self._verification = verification
        self._now = now
        self.recheck_after_s: float | None = introspection.recheck_after_s
        self.max_missed_rechecks = introspection.max_missed_rechecks

    def stamp(self) -> int:
        return 0

    def verify(self, token: str, *, again: bool = False) -> Verified:
        """See `Verifier.verify`."""
        claims = self.find_claims(token, again=again)
        if claims is None:
            raise NotAuthorized(INACTIVE)
        return self.accept(claims)

    def find_claims(self, token: str, *, again: bool = False) -> Claims | None:
        """The provider's answer about a token; None if it is not active there. Raises Unavailable."""
        answer = self._verification.verdict(token, again=again)
        return None if answer is None else {"iss": self._provider.issuer} | answer

    def is_meant_by(self, claims: Claims) -> bool:
        """Whether issuer and audience match this provider's configuration, as for signed tokens."""
        issuer = claims["iss"]
        is_trusted = isinstance(issuer, str) and self._provider.trusts(issuer)
        return is_trusted and self._provider.rules.accepts_audience(audiences_of(claims))

    def accept(self, claims: Claims) -> Verified:
        """Apply the provider's rules, as for the claims of a JWT, except that `exp` may be missing.

        Raises:
            NotAuthorized: a rule is not met, or it is not an access token.

        """
        kind = claims.get("token_type", "Bearer")
        if not isinstance(kind, str) or kind.lower() not in _ACCESS_TOKEN_TYPES:
            raise NotAuthorized("The token is not a bearer access token: send the token named access_token.")
        verify_claims(claims, self._provider.rules, now=self._now, needs_expiry=False)
        is_dated = "exp" in claims
        expires_at = seconds(claims["exp"]) if is_dated else self._now() + UNDATED_S
        verified = verified_token_of(claims, self._provider, expires_at=expires_at)
        skew = self._provider.clock_skew_s if is_dated else 0
        return Verified(verified, expires_at + skew, is_dated=is_dated)


def verify_by_first(verifiers: Iterable[OpaqueTokens], token: str) -> tuple[OpaqueTokens, Verified]:
    """Ask the providers in turn; the first that reports the token as active and matches its issuer and audience
    decides.

    Raises:
        NotAuthorized: no provider reports it as active, or it does not meet the rules of the one that does.
        Unavailable: a provider does not answer, and no other one reports it as active.

    """
    first_active: tuple[OpaqueTokens, Claims] | None = None
    unavailable: Unavailable | None = None
    for verifier in verifiers:
        try:
            claims = verifier.find_claims(token)
        except Unavailable as error:
            unavailable = error
            continue
        if claims is None:
            continue
        if verifier.is_meant_by(claims):
            return verifier, verifier.accept(claims)
        first_active = first_active or (verifier, claims)
    if unavailable is not None:
        raise unavailable
    if first_active is None:
        raise NotAuthorized(INACTIVE)
    verifier, claims = first_active
    return verifier, verifier.accept(claims)
