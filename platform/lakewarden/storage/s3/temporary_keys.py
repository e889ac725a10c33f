"""The contract of what issues temporary keys for one location and one level of access."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from lakewarden.storage.client_access import AccessLevel


@dataclass(frozen=True, slots=True)
class TemporaryKeys:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at: datetime


class KeyIssuer(Protocol):
    """Shared by threads."""

    def issue(self, location: str, level: AccessLevel) -> TemporaryKeys:
        """Keys for what lies below `location`. Raises StorageError that says what to change."""
        ...
