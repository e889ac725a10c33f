"""The signing keys of one OpenID provider: fetched when needed, at most one fetch at a time; for the verifiers."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key

from lakewarden.authn.json_fetch import FetchFailed, FetchJson, JsonObject
from lakewarden.errors import NotAuthorized, Unavailable

log = logging.getLogger(__name__)

_MIN_RSA_BITS: Final = 2048
_BITS_PER_CHARACTER: Final = 6  # of base64url
_PUBLIC_KEY_TYPES: Final = ("RSA", "EC", "OKP")


@dataclass(frozen=True, slots=True)
class RefreshLimits:
    """All in seconds.

    `unknown_key`: least time between two fetches because of unknown key ids; `no_keys`: the same while no key is
    known; `max_age`: older keys are fetched again in the background, to notice withdrawn keys. `places` (a number):
    threads that may fetch, or wait for a fetch, at the same time. Further threads wait for a place only until the
    fetch has taken `patience`: a provider that hangs must not hold all threads of the server.
    """

    unknown_key: float = 10.0
    no_keys: float = 1.0
    max_age: float = 300.0
    places: int = 8
    patience: float = 0.25


class ProviderKeys:
    """A map from key id to public key. Thread-safe; looking up a known key never waits for the network.

    `generation` grows with every change of the set of keys: tokens verified by an older set must be verified again.
    While the provider is down, the last known keys stay valid.
    """

    def __init__(
        self,
        *,
        jwks_address: Callable[[], str],
        fetch: FetchJson,
        limits: RefreshLimits,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jwks_address = jwks_address
        self._fetch = fetch
        self._limits = limits
        self._monotonic = monotonic
        self.generation = 0
        self._keys: dict[str, Key] = {}
        self._documents: list[JsonObject] = []
        self._failed = False
        self._attempts = 0
        self._attempted_at = float("-inf")
        self._renew_at = float("inf")
        self._slow_from = float("inf")
        self._flight = threading.Lock()
        self._places = threading.BoundedSemaphore(limits.places)

    def find(self, key_id: str | None) -> Key:
        """Return the key with this id; without an id, the provider's only key.

        Raises:
            NotAuthorized: the provider does not publish such a key.
            Unavailable: the key is not known and the provider does not answer.

        """
        self.renew_if_old()
        key = self._select(key_id)
        if key is None and (key_id is not None or not self._keys):
            self._refresh_in_turn(seen=self._attempts)
            key = self._select(key_id)
        if key is not None:
            return key
        if self._failed:
            raise Unavailable("The identity provider cannot be reached to verify the token: try again shortly.")
        if key_id is None:
            raise NotAuthorized("The token does not say which key signed it (no 'kid' in its header).")
        raise NotAuthorized("The token is signed with a key that its issuer does not publish: get a new token.")

    def renew_if_old(self) -> None:
        """Start to fetch the keys in the background if they are older than `max_age`. Never blocks."""
        if self._monotonic() < self._renew_at:
            return
        self._renew_at = self._monotonic() + self._limits.max_age
        threading.Thread(
            target=self._refresh, kwargs={"seen": self._attempts}, name="oidc-key-renewal", daemon=True
        ).start()

    def _select(self, key_id: str | None) -> Key | None:
        keys = self._keys
        if key_id is not None:
            return keys.get(key_id)
        return next(iter(keys.values())) if len(keys) == 1 else None

    def _refresh_in_turn(self, *, seen: int) -> None:
        """Fetch the keys, or wait for the fetch that is running.

        Raises Unavailable if it is slow and many threads wait.
        """
        patience = min(self._limits.patience, self._slow_from - self._monotonic())
        if not self._places.acquire(timeout=max(0.0, patience)):
            raise Unavailable("The identity provider is slow to give its keys: try again shortly.")
        try:
            self._refresh(seen=seen)
        finally:
            self._places.release()

    def _refresh(self, *, seen: int) -> None:
        """Fetch the keys, unless another thread tried since `seen` (the caller's `_attempts`)
        or the pause is not over.
        """
        with self._flight:
            pause = self._limits.unknown_key if self._keys else self._limits.no_keys
            if self._attempts != seen or self._monotonic() - self._attempted_at < pause:
                return
            self._slow_from = self._monotonic() + self._limits.patience
            try:
                self._install(self._fetch(self._jwks_address()))
            except FetchFailed as error:
                self._failed = True
                log.warning("The keys of an identity provider could not be fetched: %s", error)
            finally:
                self._slow_from = float("inf")
                self._attempts += 1
                self._attempted_at = self._monotonic()

    def _install(self, document: JsonObject) -> None:
        listed = document.get("keys")
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        keys = usable_keys(entries)
        if not keys:
            raise FetchFailed("the provider's key set holds no key that tokens can be verified with")
        self._failed = False
        self._renew_at = self._monotonic() + self._limits.max_age
        if entries != self._documents:
            self._keys, self._documents = keys, entries
            self.generation += 1


def usable_keys(entries: list[JsonObject]) -> dict[str, Key]:
    """Import the public signature keys of a JWK set (RFC 7517); unusable keys are skipped:

    symmetric keys (a published secret proves nothing), keys for encryption, short RSA keys, unknown types and curves.
    """
    keys: dict[str, Key] = {}
    for entry in entries:
        if entry.get("kty") not in _PUBLIC_KEY_TYPES or entry.get("use", "sig") != "sig":
            continue
        if entry["kty"] == "RSA" and len(str(entry.get("n"))) * _BITS_PER_CHARACTER < _MIN_RSA_BITS:
            log.warning("An RSA key of an identity provider is shorter than %d bits: left out", _MIN_RSA_BITS)
            continue
        try:
            key = JWKRegistry.import_key(entry)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            log.info("A key of an identity provider was left out: %s", error)
            continue
        key.ensure_kid()
        keys.setdefault(str(key.kid), key)
    return keys
