"""Remembers tokens that a provider refused, for five seconds; for chain.py."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lakewarden.authn.bearer import digest_of
from lakewarden.authn.token_cache import TokenCache
from lakewarden.errors import NotAuthorized

_CAPACITY: Final = 10_000
_REMEMBERED_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Refusal:
    message: str
    until: float


class RefusedTokens:
    """Keeps many requests with the same invalid token from causing as many calls to the provider.

    Thread-safe, bounded.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._cache: TokenCache[_Refusal] = TokenCache(capacity=_CAPACITY)

    def remember(self, token: str, error: NotAuthorized) -> None:
        self._cache.put(digest_of(token), _Refusal(error.message, self._monotonic() + _REMEMBERED_S))

    def ensure_none(self, token: str) -> None:
        """Raises NotAuthorized with the same message again if the token was just refused."""
        refusal = self._cache.find(digest_of(token))
        if refusal is not None and self._monotonic() < refusal.until:
            raise NotAuthorized(refusal.message)
