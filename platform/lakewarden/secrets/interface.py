"""The interface of secret stores: where the credentials of warehouses are kept, and nothing else is."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID


class SecretError(Exception):
    """Base of the errors of secret stores. The message is a sentence that may be shown to users."""


class SecretsUnavailable(SecretError):
    """The store is sealed, cannot be reached, or denies access: it is not known whether there is such a secret."""


class SecretsNotConfigured(SecretError):
    """The server has no key, so it can keep no secret."""


class SecretMissing(SecretError):
    """The store answers, and does not have this secret."""


class SecretUnreadable(SecretError):
    """The store has the secret, and cannot decrypt it: the key is missing, or the stored value was changed."""


class SecretStore(Protocol):
    """Secrets are never changed: a new value is a new secret, and whoever referred to the old one is switched over.

    So a reference can be remembered together with its value, and a crash between two steps loses nothing.
    All methods raise SecretsUnavailable.
    """

    def put(self, value: Mapping[str, str]) -> UUID:
        """Keep a value durably; returns its reference. Raises SecretsNotConfigured."""
        ...

    def get(self, reference: UUID) -> dict[str, str]:
        """Raises SecretMissing and SecretUnreadable."""
        ...

    def delete(self, reference: UUID) -> None:
        """A missing one is not an error."""
        ...

    def references(self) -> Iterator[tuple[UUID, datetime]]:
        """All that are kept, each with the time when it was put."""
        ...
