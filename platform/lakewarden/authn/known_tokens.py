"""Caches verified tokens until they expire and verifies them again in the background; for chain.py."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from lakewarden.authn.bearer import digest_of
from lakewarden.authn.claim_checks import EXPIRED
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authn.token_cache import TokenCache
from lakewarden.authn.verifier import Verified, Verifier
from lakewarden.errors import NotAuthorized, Unavailable

_CAPACITY: Final = 10_000
_RECHECKS_AT_ONCE: Final = 4
# times `recheck_after_s`; a token that was not used for so long is verified again before the request goes on
_IDLE: Final = 5
_PATIENCE_S: Final = 0.5
_BUSY: Final = "Too many tokens are verified again at once: try again shortly."


@dataclass(slots=True)
class _Known:
    verified: Verified
    verifier: Verifier
    confirmed_at: float
    asked_at: float
    outcome: Future[VerifiedToken] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class KnownTokens:
    """A cache from token to its verified content. Thread-safe.

    A token in regular use is verified again in the background when it is due, so no request waits. A token that was not
    used for a while is verified again before the request goes on, because it may have been revoked long ago. A token
    that the provider refuses is removed immediately. A token that could not be verified for `max_missed_rechecks`
    intervals, because the provider is down or this server is overloaded, is not accepted until it is verified again.
    """

    def __init__(
        self, *, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._monotonic = monotonic
        self._cache: TokenCache[_Known] = TokenCache(capacity=_CAPACITY)
        # one semaphore for each verifier: a provider that hangs must not delay the tokens of others
        self._rechecks: dict[Verifier, threading.BoundedSemaphore] = defaultdict(
            lambda: threading.BoundedSemaphore(_RECHECKS_AT_ONCE)
        )

    def add(self, token: str, verified: Verified, verifier: Verifier) -> None:
        now = self._monotonic()
        self._cache.put(digest_of(token), _Known(verified, verifier, now, now))

    def find(self, token: str, *, may_wait: bool) -> VerifiedToken | None:
        """Return the token's content; None if it must be verified (or, with `may_wait` false, may have to be).

        Raises:
            NotAuthorized: the token has expired, or was just refused.
            Unavailable: it must be verified again, which is not possible now (only with `may_wait`).

        """
        known = self._valid(digest_of(token))
        if known is None:
            return None
        recheck_after = known.verifier.recheck_after_s
        if recheck_after is None:
            return known.verified.token
        now = self._monotonic()
        if now - known.confirmed_at >= recheck_after * known.verifier.max_missed_rechecks:
            return self._confirmed(token, known) if may_wait else None
        if now - known.asked_at >= recheck_after * _IDLE:
            return self._rechecked(token, known) if may_wait else None
        if now - known.asked_at >= recheck_after:
            self._recheck_aside(token, known)
        return known.verified.token

    def find_fresh(self, digest: bytes) -> VerifiedToken | None:
        """Return the content of the token with this digest; None also if it expired, or is due to be verified again."""
        try:
            known = self._valid(digest)
        except NotAuthorized:
            return None
        if known is None:
            return None
        recheck_after = known.verifier.recheck_after_s
        is_due = recheck_after is not None and self._monotonic() - known.confirmed_at >= recheck_after
        return None if is_due else known.verified.token

    def _valid(self, digest: bytes) -> _Known | None:
        """Raises NotAuthorized if the token has expired."""
        known = self._cache.find(digest)
        if known is None:
            return None
        if known.verified.valid_until <= self._now():
            self._cache.discard(digest)
            if known.verified.is_dated:
                raise NotAuthorized(EXPIRED)
            return None
        if known.verifier.stamp() != known.verified.stamp:
            self._cache.discard(digest)
            return None
        return known

    def _confirmed(self, token: str, known: _Known) -> VerifiedToken:
        """Verify again; accept the token only if that succeeds."""
        try:
            return self._recheck_aside(token, known, patience=_PATIENCE_S).result(timeout=_PATIENCE_S)
        except (Unavailable, TimeoutError) as error:
            unconfirmed = self._monotonic() - known.confirmed_at
            raise Unavailable(
                f"The token could not be confirmed for {unconfirmed:.0f} seconds that the token is "
                "still valid: try again shortly."
            ) from error

    def _rechecked(self, token: str, known: _Known) -> VerifiedToken:
        """Verify again, but accept the token if the provider does not answer: it was verified not too long ago."""
        try:
            return self._recheck_aside(token, known, patience=_PATIENCE_S).result(timeout=_PATIENCE_S)
        except (Unavailable, TimeoutError):
            return known.verified.token

    def _recheck_aside(self, token: str, known: _Known, *, patience: float = 0.0) -> Future[VerifiedToken]:
        """The outcome of the verification that is running; starts one if there is none and a place for it is free."""
        with known.lock:
            if known.outcome is not None:
                return known.outcome
            outcome: Future[VerifiedToken] = Future()
            places = self._rechecks[known.verifier]
            if not places.acquire(timeout=patience):
                outcome.set_exception(Unavailable(_BUSY))
                return outcome  # it stays due, so the next request tries again
            known.outcome = outcome
        arguments = (outcome, token, known, places)
        threading.Thread(target=self._recheck_into, args=arguments, name="token-recheck", daemon=True).start()
        return outcome

    def _recheck_into(
        self, outcome: Future[VerifiedToken], token: str, known: _Known, places: threading.BoundedSemaphore
    ) -> None:
        try:
            outcome.set_result(self._recheck(token, known))
        except (NotAuthorized, Unavailable) as error:
            # a refused token was removed already; otherwise it is tried again at the next interval
            outcome.set_exception(error)
        finally:
            known.asked_at, known.outcome = self._monotonic(), None
            places.release()

    def _recheck(self, token: str, known: _Known) -> VerifiedToken:
        try:
            verified = known.verifier.verify(token, again=True)
        except NotAuthorized:
            self._cache.discard(digest_of(token))
            raise
        self.add(token, verified, known.verifier)
        return verified.token
