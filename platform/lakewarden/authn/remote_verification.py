"""Limits the calls that ask another server about tokens: introspection at a provider, TokenReview at a cluster.

That server is called the party here.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lakewarden.authn.bearer import digest_of
from lakewarden.authn.json_fetch import FetchFailed, JsonObject, ServesNobody
from lakewarden.authn.token_cache import TokenCache
from lakewarden.errors import Unavailable

log = logging.getLogger(__name__)

_DOWN = "The identity provider cannot be asked about the token: try again shortly."
_BUSY = "The identity provider is asked about too many tokens at once: try again shortly."


@dataclass(frozen=True, slots=True)
class RemoteVerificationLimits:
    """All times in seconds.

    `places` (a number): threads that may ask, or wait for an answer, at once; the next one waits `patience` for
    a place. Tokens that were accepted before have as many places of their own, which invented tokens cannot take.
    `refusal`: how long a refusal, or a failure with one token, is remembered, for the last `refusals` tokens.
    `pause`: while the party is down, one thread at a time tries again, at such intervals.
    """

    places: int = 8
    patience: float = 0.25
    refusal: float = 5.0
    refusals: int = 10_000
    pause: float = 1.0


@dataclass(frozen=True, slots=True)
class _Setback:
    until: float
    is_refusal: bool


@dataclass(slots=True)
class _Flight:
    """One call that is running; other threads with the same token wait for its answer."""

    landed: threading.Event = field(default_factory=threading.Event)
    has_answer: bool = False
    answer: JsonObject | None = None


class _Lane:
    """The places for new tokens or for known ones, and whether the last call found the party down."""

    def __init__(self, places: int) -> None:
        self.places = threading.BoundedSemaphore(places)
        self.is_down = False
        self.retry_at = float("-inf")
        self.attempt = threading.Lock()


class RemoteVerification:
    """Asks one party about tokens. Thread-safe.

    There is at most one call for a token at a time, few calls in all, and no second call for a token that was just
    refused. While the party is down, requests fail immediately. Accepted tokens are not cached here.

    New tokens and tokens that were accepted before have a lane each: a flood of new tokens neither takes the places of
    known ones nor, if it makes the party refuse to answer, marks the party as down for them.
    """

    def __init__(
        self,
        ask: Callable[[str], JsonObject | None],
        *,
        limits: RemoteVerificationLimits,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._limits = limits
        self._monotonic = monotonic
        self._first, self._again = _Lane(limits.places), _Lane(limits.places)
        self._setbacks: TokenCache[_Setback] = TokenCache(capacity=limits.refusals)
        self._flights: dict[bytes, _Flight] = {}
        self._lock = threading.Lock()

    def verdict(self, token: str, *, again: bool = False) -> JsonObject | None:
        """Return the party's answer about a valid token, None for a token that it refuses.

        `again`: the token was accepted before.

        Raises:
            Unavailable: the party does not answer, or too many calls are running.

        """
        digest = digest_of(token)
        setback = self._setbacks.find(digest)
        if setback is not None and self._monotonic() < setback.until:
            if setback.is_refusal:
                return None
            raise Unavailable(_DOWN)
        lane = self._again if again else self._first
        if not lane.places.acquire(timeout=self._limits.patience):
            raise Unavailable(_BUSY)
        try:
            return self._shared(token, digest, lane)
        finally:
            lane.places.release()

    def _shared(self, token: str, digest: bytes, lane: _Lane) -> JsonObject | None:
        with self._lock:
            others = self._flights.get(digest)
            own = self._flights.setdefault(digest, _Flight())
        if others is not None:
            others.landed.wait()
            if not others.has_answer:
                raise Unavailable(_DOWN)
            return others.answer
        try:
            own.answer = self._asked(token, digest, lane)
            own.has_answer = True
        finally:
            with self._lock:
                del self._flights[digest]
            own.landed.set()
        return own.answer

    def _asked(self, token: str, digest: bytes, lane: _Lane) -> JsonObject | None:
        if not lane.is_down:
            return self._ask_now(token, digest, lane)
        if self._monotonic() < lane.retry_at or not lane.attempt.acquire(blocking=False):
            raise Unavailable(_DOWN)
        try:
            return self._ask_now(token, digest, lane)
        finally:
            lane.attempt.release()

    def _ask_now(self, token: str, digest: bytes, lane: _Lane) -> JsonObject | None:
        try:
            answer = self._ask(token)
        except ServesNobody as error:
            lane.is_down, lane.retry_at = True, self._monotonic() + self._limits.pause
            log.warning("A token could not be verified: %s", error)
            raise Unavailable(_DOWN) from error
        except FetchFailed as error:
            self._remember(digest, is_refusal=False)
            log.warning("A token could not be verified: %s", error)
            raise Unavailable(_DOWN) from error
        lane.is_down = False
        if answer is None:
            self._remember(digest, is_refusal=True)
        return answer

    def _remember(self, digest: bytes, *, is_refusal: bool) -> None:
        self._setbacks.put(digest, _Setback(self._monotonic() + self._limits.refusal, is_refusal))
