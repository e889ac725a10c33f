"""When to try again: exponential pauses with jitter, and an end after a time without progress."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lakewarden.errors import Unavailable

_random = random.SystemRandom()


@dataclass(slots=True)
class Backoff:
    """`give_up_s`: seconds without progress after which `pause_s` raises `Unavailable`."""

    first_s: float = 0.2
    longest_s: float = 30.0
    give_up_s: float = 300.0
    clock: Callable[[], float] = time.monotonic
    _failures: int = field(default=0, init=False)
    _since: float | None = field(default=None, init=False)

    def succeeded(self) -> None:
        self._failures, self._since = 0, None

    def pause_s(self, reason: str, *, at_least_s: float = 0.0) -> float:
        """How long to wait before the next try; at least as long as the server asked for."""
        now = self.clock()
        self._since = now if self._since is None else self._since
        if now - self._since >= self.give_up_s:
            raise Unavailable(f"Nothing was acknowledged for {now - self._since:.0f} s. The last reason: {reason}.")
        wanted = max(at_least_s, min(self.longest_s, self.first_s * (1 << min(self._failures, 16))))
        self._failures += 1
        return wanted * _random.uniform(1.0, 1.5)
