"""Limits how many new tokens from one address are verified at the same time, so others get a turn; for chain.py."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lakewarden.errors import Unavailable
from lakewarden.networks import network_of

MOST: Final = 6
"""Tokens from one address at the same time, at most; less than `RemoteVerificationLimits.places`."""

_PATIENCE_S: Final = 0.25


class FairShare:
    """Thread-safe. Without an address (`source` empty) there is no limit."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._changed = threading.Condition()

    @contextmanager
    def of(self, source: str) -> Iterator[None]:
        """Hold one of the address's places. Raises Unavailable if none becomes free within 0.25 seconds."""
        network = network_of(source)
        with self._changed:
            if source and not self._changed.wait_for(lambda: self._held[network] < MOST, timeout=_PATIENCE_S):
                raise Unavailable("Too many new tokens come from this address at once: try again shortly.")
            self._held[network] += 1
        try:
            yield
        finally:
            with self._changed:
                self._held[network] -= 1
                if not self._held[network]:
                    del self._held[network]
                self._changed.notify_all()
