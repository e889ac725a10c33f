"""The keys that encrypt secrets in the database: AES-256-GCM (NIST SP 800-38D) with a random nonce for each secret."""

import os
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lakewarden.config import SecretsConfig
from lakewarden.config.secrets import parse_keys
from lakewarden.secrets.interface import SecretsNotConfigured, SecretUnreadable

_NONCE_BYTES = 12
_PURPOSE = b"lakewarden secret 1\0"
SETTINGS = "LAKEWARDEN__SECRETS__KEYS (or LAKEWARDEN__SECRETS__KEYS_FILE)"


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is stored of a secret."""

    key_id: str
    nonce: bytes
    ciphertext: bytes


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The first key encrypts, all of them decrypt."""

    _ciphers: dict[str, AESGCM] = field(repr=False)

    @classmethod
    def read(cls, settings: SecretsConfig) -> Self:
        """Raises SecretsNotConfigured if there is a file of keys that cannot be read."""
        text = "" if settings.keys is None else settings.keys.get_secret_value()
        try:
            if settings.keys_file is not None:
                text = settings.keys_file.read_text(encoding="utf-8")
            keys = parse_keys(text) if text or settings.keys_file else {}
        except OSError as error:
            raise SecretsNotConfigured(
                f"The file of keys, secrets.keys_file, cannot be read: {error.strerror}: {str(settings.keys_file)!r}"
            ) from error
        except ValueError as error:
            reason = "it is not text" if isinstance(error, UnicodeError) else str(error)
            raise SecretsNotConfigured(f"The file of keys, secrets.keys_file, is not valid: {reason}") from None
        return cls({key_id: AESGCM(key) for key_id, key in keys.items()})

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._ciphers

    def __bool__(self) -> bool:
        return bool(self._ciphers)

    @property
    def writing(self) -> str:
        """The id of the key that encrypts. Raises SecretsNotConfigured."""
        for key_id in self._ciphers:
            return key_id
        raise SecretsNotConfigured(f"The server has no key to encrypt secrets with: set {SETTINGS}")

    def seal(self, reference: UUID, content: bytes) -> Sealed:
        """Raises SecretsNotConfigured."""
        key_id, nonce = self.writing, os.urandom(_NONCE_BYTES)
        ciphertext = self._ciphers[key_id].encrypt(nonce, content, _bound_to(reference, key_id))
        return Sealed(key_id, nonce, ciphertext)

    def open(self, reference: UUID, sealed: Sealed) -> bytes:
        """Raises SecretUnreadable."""
        cipher = self._ciphers.get(sealed.key_id)
        if cipher is None:
            raise SecretUnreadable(
                f"The secret {reference} was encrypted with the key {sealed.key_id!r}, which the server does not have: "
                f"add it to {SETTINGS}"
            )
        try:
            return cipher.decrypt(sealed.nonce, sealed.ciphertext, _bound_to(reference, sealed.key_id))
        except (InvalidTag, ValueError):
            raise SecretUnreadable(
                f"The secret {reference} cannot be decrypted with the key {sealed.key_id!r}: the key is another one of "
                "the same id, or the stored value was changed"
            ) from None


def _bound_to(reference: UUID, key_id: str) -> bytes:
    """Authenticated with the ciphertext, so that it is of no use in another row."""
    return _PURPOSE + reference.bytes + key_id.encode()
