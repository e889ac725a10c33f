"""Bounds what a silent token service costs: whoever needs nothing of it must not wait for a thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from lakewarden import config
from lakewarden.storage.bounded import Places
from lakewarden.storage.breaker import Breaker
from lakewarden.storage.interface import StorageSilent


class TokenService:
    """One address, for all warehouses of a process that use it: when it is silent, it is so for all of them.

    Answers, errors too, never make others wait: a service refuses one account, and issues keys to the next.
    """

    def __init__(self, address: str, *, most: int, failures: int, pause_s: float) -> None:
        self._places = Places(most, name=f"The token service at {address}")
        self._breaker = Breaker(address, most=failures, pause_s=pause_s, kind="token service", counts=StorageSilent)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a wait for what the service issues, also by another caller. Raises StorageBusy."""
        with self._places.one(waits=not self._breaker.is_failing):
            yield

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around a request. Raises StorageUnavailable at once while the service is left alone."""
        with self._breaker.guarded():
            yield


@lru_cache(maxsize=1000)
def token_service(address: str) -> TokenService:
    settings = config.current().storage
    return TokenService(
        address,
        most=settings.max_calls_at_once,
        failures=settings.failures_before_pause,
        pause_s=settings.pause_s,
    )
