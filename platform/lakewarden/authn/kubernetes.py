"""Verifies tokens of Kubernetes service accounts, by TokenReview or by the cluster's keys; for chain.py."""

import time
from collections.abc import Callable

from lakewarden.authn.bearer import UnverifiedToken, peek
from lakewarden.authn.claim_checks import EXPIRED, INACTIVE, WRONG_AUDIENCE, verify_claims
from lakewarden.authn.kubernetes_api import Cluster
from lakewarden.authn.provider import DEFAULT_CLOCK_SKEW_S, TokenRules
from lakewarden.authn.provider_keys import ProviderKeys, RefreshLimits
from lakewarden.authn.remote_verification import RemoteVerification, RemoteVerificationLimits
from lakewarden.authn.service_account import ServiceAccount, claimed_account, reviewed_user
from lakewarden.authn.signatures import signed_claims
from lakewarden.authn.verified_token import seconds
from lakewarden.authn.verifier import UNDATED_S, Verified, Verifier
from lakewarden.config import KubernetesConfig
from lakewarden.errors import NotAuthorized


class ReviewedAccounts:
    """A `Verifier` that calls the API server's TokenReview, which also refuses tokens of deleted accounts and pods."""

    def __init__(
        self, settings: KubernetesConfig, verification: RemoteVerification, *, now: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._verification = verification
        self._now = now
        self.recheck_after_s: float | None = settings.recheck_after_s
        self.max_missed_rechecks = settings.max_missed_rechecks

    def stamp(self) -> int:
        return 0

    def verify(self, token: str, *, again: bool = False) -> Verified:
        """See `Verifier.verify`. Tokens that cannot be valid are refused without a call."""
        unverified = peek(token)
        self._ensure_hopeful(unverified)
        user = self._verification.verdict(token, again=again)
        if user is None:
            raise NotAuthorized(INACTIVE)
        # the unverified `exp` can be trusted from here on: the API server has authenticated the token
        expires_at = self._now() + UNDATED_S if unverified.expires_at is None else unverified.expires_at
        account = ServiceAccount(user.get("username"), user.get("uid"))
        verified = account.verified_token(self._settings, issuer=unverified.issuer, expires_at=expires_at)
        return Verified(verified, expires_at, is_dated=unverified.expires_at is not None)

    def _ensure_hopeful(self, token: UnverifiedToken) -> None:
        audiences = self._settings.audience
        if audiences and token.audiences and set(audiences).isdisjoint(token.audiences):
            raise NotAuthorized(WRONG_AUDIENCE)
        if token.expires_at is not None and token.expires_at <= self._now():
            raise NotAuthorized(EXPIRED)


class SignedAccounts:
    """A `Verifier` by the cluster's published keys. Tokens of a deleted account are accepted until they expire."""

    recheck_after_s: float | None = None
    max_missed_rechecks = 0

    def __init__(
        self,
        settings: KubernetesConfig,
        cluster: Cluster,
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        limits: RefreshLimits,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._now = now
        self._issuer = ""
        self._keys = ProviderKeys(jwks_address=self._discover, fetch=cluster.fetch, limits=limits, monotonic=monotonic)

    def stamp(self) -> int:
        self._keys.renew_if_old()
        return self._keys.generation

    def verify(self, token: str, *, again: bool = False) -> Verified:  # noqa: ARG002 verification is always local
        """See `Verifier.verify`."""
        claims, generation = signed_claims(peek(token), self._keys)
        rules = TokenRules((self._issuer.rstrip("/"),), self._settings.audience)
        verify_claims(claims, rules, now=self._now)
        expires_at = seconds(claims["exp"])
        account = claimed_account(claims)
        verified = account.verified_token(self._settings, issuer=self._issuer, expires_at=expires_at)
        return Verified(verified, expires_at + DEFAULT_CLOCK_SKEW_S, stamp=generation)

    def _discover(self) -> str:
        self._issuer = self._cluster.issuer()
        return self._cluster.keys_address


def service_accounts(
    settings: KubernetesConfig,
    *,
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    key_limits: RefreshLimits | None = None,
    verification_limits: RemoteVerificationLimits | None = None,
) -> Verifier:
    """The verifier for the configured method."""
    cluster = Cluster(settings)
    if settings.method == "keys":
        limits = key_limits or RefreshLimits()
        return SignedAccounts(settings, cluster, now=now, monotonic=monotonic, limits=limits)
    verification = RemoteVerification(
        lambda token: reviewed_user(cluster.review(token), settings.audience),
        limits=verification_limits or RemoteVerificationLimits(),
        monotonic=monotonic,
    )
    return ReviewedAccounts(settings, verification, now=now)
