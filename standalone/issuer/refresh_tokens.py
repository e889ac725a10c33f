"""Refresh tokens with rotation (RFC 9700 section 4.14.2): each can be used once; reuse revokes its whole family."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

import secrets
import threading
import time
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Final

from authlib.oauth2.rfc6749 import TokenMixin

from standalone.issuer.clients import Client
from standalone.issuer.state import StateDir

REFRESH_TOKENS_FILE: Final = "refresh-tokens.json"
_LIFETIME_S: Final = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class RefreshToken(TokenMixin):
    """The content of a refresh token. `family` identifies the sign-in from which it was derived."""

    digest: str
    client_id: str
    subject: str
    scope: str
    family: str
    expires_at: float
    is_used: bool = False

    def check_client(self, client: Client) -> bool:
        return self.client_id == client.client_id

    def get_scope(self) -> str:
        return self.scope


class RefreshTokens:
    """The refresh tokens by their SHA-256; the file does not contain the tokens themselves. Thread-safe."""

    def __init__(self, state: StateDir) -> None:
        self._state = state
        self._lock = threading.Lock()
        stored = state.read(REFRESH_TOKENS_FILE) or {}
        self._tokens = {digest: RefreshToken(digest=digest, **entry) for digest, entry in stored.items()}

    def new(self, **_request: object) -> str:
        """Return the text of a new token, which is not valid before `add`."""
        return secrets.token_urlsafe(32)

    def add(self, token: str, *, client_id: str, subject: str, scope: str, family: str | None) -> None:
        entry = RefreshToken(
            digest=_digest(token),
            client_id=client_id,
            subject=subject,
            scope=scope,
            family=family or secrets.token_hex(8),
            expires_at=time.time() + _LIFETIME_S,
        )
        with self._lock:
            self._tokens[entry.digest] = entry
            self._save()

    def find(self, token: str) -> RefreshToken | None:
        """Return a valid token. A token that was used before revokes its family, because it was probably stolen."""
        with self._lock:
            entry = self._tokens.get(_digest(token))
            if entry is not None and entry.is_used:
                self._revoke(entry.family)
                return None
            return entry if entry is not None and entry.expires_at > time.time() else None

    def use_up(self, entry: RefreshToken) -> bool:
        """Mark the token as used; False if another request was first."""
        with self._lock:
            current = self._tokens.get(entry.digest)
            if current is None or current.is_used:
                return False
            self._tokens[entry.digest] = replace(current, is_used=True)
            self._save()
            return True

    def revoke(self, entry: RefreshToken) -> None:
        """Revoke all tokens of the same sign-in."""
        with self._lock:
            self._revoke(entry.family)

    def _revoke(self, family: str) -> None:
        self._tokens = {digest: each for digest, each in self._tokens.items() if each.family != family}
        self._save()

    def _save(self) -> None:
        now = time.time()
        self._tokens = {digest: each for digest, each in self._tokens.items() if each.expires_at > now}
        rows = {
            digest: {k: v for k, v in asdict(each).items() if k != "digest"} for digest, each in self._tokens.items()
        }
        self._state.write(REFRESH_TOKENS_FILE, rows)


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
