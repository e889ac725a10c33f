"""Opaque access tokens and revoked tokens (RFC 7009), stored in files until they expire; for access_tokens.py."""

import secrets
import threading
import time
from hashlib import sha256
from typing import Final

from standalone.issuer.state import JsonObject, StateDir

OPAQUE_TOKENS_FILE: Final = "opaque-tokens.json"
REVOKED_TOKENS_FILE: Final = "revoked-tokens.json"

_PREFIX: Final = "lwdev_"


class OpaqueTokens:
    """Issues random texts instead of JWTs; files and memory contain only their SHA-256. Thread-safe."""

    def __init__(self, state: StateDir) -> None:
        self._entries = _Entries(state, OPAQUE_TOKENS_FILE)

    def hand_out(self, jwt: str, *, expires_at: float) -> str:
        token = _PREFIX + secrets.token_urlsafe(32)
        self._entries.add(_digest(token), expires_at, jwt=jwt)
        return token

    def find(self, token: str) -> str | None:
        """Return the JWT that this token stands for, or None."""
        entry = self._entries.find(_digest(token)) if token.startswith(_PREFIX) else None
        return None if entry is None else str(entry["jwt"])


class RevokedTokens:
    """The `jti` of revoked access tokens. Thread-safe."""

    def __init__(self, state: StateDir) -> None:
        self._entries = _Entries(state, REVOKED_TOKENS_FILE)

    def add(self, token_id: str, *, expires_at: float) -> None:
        self._entries.add(token_id, expires_at)

    def holds(self, token_id: str) -> bool:
        return self._entries.find(token_id) is not None


class _Entries:
    """A file of objects by key, each until its `expires_at`."""

    def __init__(self, state: StateDir, file: str) -> None:
        self._state = state
        self._file = file
        self._lock = threading.Lock()
        self._entries: JsonObject = state.read(file) or {}

    def add(self, key: str, expires_at: float, **entry: object) -> None:
        with self._lock:
            now = time.time()
            kept = {name: each for name, each in self._entries.items() if each["expires_at"] > now}
            self._entries = kept | {key: entry | {"expires_at": expires_at}}
            self._state.write(self._file, self._entries)

    def find(self, key: str) -> JsonObject | None:
        with self._lock:
            found: JsonObject | None = self._entries.get(key)
            return found if found is not None and found["expires_at"] > time.time() else None


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
