"""Two stores of secrets at once, while the secrets are moved from one to the other."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from uuid import UUID

from lakewarden.secrets.interface import SecretMissing, SecretStore


class EitherStore:
    """New secrets go to `main`; those that it does not have are looked for in `other`."""

    def __init__(self, main: SecretStore, other: SecretStore) -> None:
        self._main = main
        self._other = other

    def put(self, value: Mapping[str, str]) -> UUID:
        return self._main.put(value)

    def get(self, reference: UUID) -> dict[str, str]:
        try:
            return self._main.get(reference)
        except SecretMissing as missing:
            try:
                return self._other.get(reference)
            except SecretMissing as error:
                raise missing from error

    def delete(self, reference: UUID) -> None:
        self._main.delete(reference)
        self._other.delete(reference)

    def references(self) -> Iterator[tuple[UUID, datetime]]:
        yield from self._main.references()
        yield from self._other.references()
