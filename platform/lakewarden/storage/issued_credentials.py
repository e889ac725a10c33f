"""Remembers credentials that stores have issued for one location and one level of access, for half of their life."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from lakewarden import config
from lakewarden.storage.made_once import MadeOnce

LONGEST_KEPT: Final = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Issued:
    """Settings of engines that are secret, and end."""

    properties: Mapping[str, str] = field(repr=False)
    expires_at: datetime
    issued_at: datetime = field(default_factory=now)

    @property
    def fresh_until(self) -> datetime:
        """Then at least half of their life is left."""
        return min(self.issued_at + (self.expires_at - self.issued_at) / 2, self.issued_at + LONGEST_KEPT)


class IssuedCredentials:
    """Shared by all threads of a process. The key must contain everything that determines what a store issues."""

    def __init__(self, capacity: int, *, clock: Callable[[], datetime] = now) -> None:
        self._kept: MadeOnce[Issued] = MadeOnce(capacity)
        self._now = clock

    def get(self, key: Hashable, issue: Callable[[], Issued]) -> Issued:
        """Those of the key that have at least half of their life left, or new ones of `issue`.

        Calls of one moment share one `issue`, and its error; an error is not remembered.
        """
        return self._kept.get(key, issue, is_good=lambda kept: self._now() < kept.fresh_until)


@cache
def of_this_process() -> IssuedCredentials:
    return IssuedCredentials(config.current().storage.max_kept_credentials)
