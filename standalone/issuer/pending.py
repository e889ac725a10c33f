"""Authorization codes and device codes until they are redeemed; only in memory."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from authlib.oauth2.rfc8628 import DeviceCredentialMixin
from authlib.oidc.core import AuthorizationCodeMixin

CODE_LIFETIME_S: Final = 120
DEVICE_LIFETIME_S: Final = 900
_CAPACITY: Final = 10_000


@dataclass(frozen=True, slots=True)
class PendingCode(AuthorizationCodeMixin):
    """An issued authorization code (RFC 6749 section 4.1.2) with its PKCE challenge (RFC 7636)."""

    client_id: str
    redirect_uri: str
    scope: str
    subject: str
    nonce: str | None
    auth_time: int
    code_challenge: str
    code_challenge_method: str
    expires_at: float

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> int:
        return self.auth_time


@dataclass(slots=True)
class PendingDevice(DeviceCredentialMixin):
    """A device that waits for a user (RFC 8628). `subject` is the user who decided, `is_approved` the decision."""

    client_id: str
    scope: str
    user_code: str
    expires_at: float
    interval_s: int
    subject: str | None = None
    is_approved: bool | None = None
    polled_at: float = field(default=float("-inf"))

    def get_client_id(self) -> str:
        return self.client_id

    def get_scope(self) -> str:
        return self.scope

    def get_user_code(self) -> str:
        return self.user_code

    def is_expired(self) -> bool:
        return self.expires_at <= time.time()

    def polls_too_often(self, *, monotonic: Callable[[], float] = time.monotonic) -> bool:
        """Record a poll; polling too early extends the interval by 5 seconds (RFC 8628 section 3.5)."""
        now = monotonic()
        is_early = now - self.polled_at < self.interval_s
        self.polled_at = now
        if is_early:
            self.interval_s += 5
        return is_early


T = TypeVar("T", PendingCode, PendingDevice)


class Pending(Generic[T]):
    """A map from codes to pending requests until they expire. `take` returns each only once. Thread-safe."""

    def __init__(self) -> None:
        self._items: dict[str, T] = {}
        self._lock = threading.Lock()

    def add(self, code: str, item: T) -> None:
        with self._lock:
            now = time.time()
            self._items = {key: value for key, value in self._items.items() if value.expires_at > now}
            if len(self._items) >= _CAPACITY:
                self._items.pop(next(iter(self._items)))
            self._items[code] = item

    def find(self, code: str) -> T | None:
        with self._lock:
            return self._items.get(code)

    def search(self, matches: Callable[[T], bool]) -> T | None:
        with self._lock:
            return next((item for item in self._items.values() if matches(item)), None)

    def take(self, code: str) -> T | None:
        with self._lock:
            return self._items.pop(code, None)
