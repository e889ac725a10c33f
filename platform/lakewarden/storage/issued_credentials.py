"""Remembers credentials that stores have issued for one location and one level of access, for half of their life."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from lakewarden import config
from lakewarden.storage.interface import StorageUnavailable
from lakewarden.storage.made_once import MadeOnce
from lakewarden.storage.token_services import TokenService, token_service

LONGEST_KEPT: Final = timedelta(hours=1)
LEAST_LEFT: Final = timedelta(minutes=1)
"""Of the life of credentials that are given out although they are not fresh any more."""


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

    def __init__(
        self,
        capacity: int,
        *,
        clock: Callable[[], datetime] = now,
        services: Callable[[str], TokenService] = token_service,
    ) -> None:
        self._kept: MadeOnce[Issued] = MadeOnce(capacity)
        self._now = clock
        self._services = services

    def get(self, key: Hashable, issue: Callable[[], Issued], *, service: str | None = None) -> Issued:
        """Those of the key that have at least half of their life left, or new ones of `issue`.

        `service` is the address that `issue` asks; None: it needs no request. If no new ones can be had now, those
        that have not ended yet are given out once more. Calls of one moment share one `issue`, and its error; an
        error is not remembered.
        """
        kept = self._kept.find(key)
        if kept is not None and self._is_fresh(kept):
            return kept
        if service is None:
            return self._renewed(key, issue)
        asked = self._services(service)

        def guarded() -> Issued:
            with asked.asking():
                return issue()

        try:
            with asked.waiting():
                return self._renewed(key, guarded)
        except StorageUnavailable:
            if kept is not None and self._is_of_use(kept):
                return kept
            raise

    def _renewed(self, key: Hashable, issue: Callable[[], Issued]) -> Issued:
        return self._kept.get(key, issue, is_good=self._is_fresh, is_of_use=self._is_of_use)

    def _is_fresh(self, kept: Issued) -> bool:
        return self._now() < kept.fresh_until

    def _is_of_use(self, kept: Issued) -> bool:
        return self._now() < kept.expires_at - LEAST_LEFT


@cache
def of_this_process() -> IssuedCredentials:
    return IssuedCredentials(config.current().storage.max_kept_credentials)
