"""Keeps secrets in a Vault-compatible server (HashiCorp Vault, OpenBao): its KV engine, version 2."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from hvac.exceptions import InvalidPath

from lakewarden.config import VaultConfig
from lakewarden.ids import new_id
from lakewarden.secrets.interface import SecretMissing, SecretsUnavailable
from lakewarden.secrets.vault_session import VaultSession

_TIME_ORDERED: Final = 7
_BITS_AFTER_THE_TIME: Final = 80


class VaultStore:
    """`installation` names the folder: those that share a path must not take each other's secrets for unused."""

    def __init__(self, settings: VaultConfig, *, installation: Callable[[], UUID]) -> None:
        self._settings = settings
        self._session = VaultSession(settings)
        self._installation = installation
        self._folder_name = ""

    def put(self, value: Mapping[str, str]) -> UUID:
        def act(engine: Any) -> tuple[UUID, Any]:  # noqa: ANN401 hvac has no types
            reference = new_id()
            path, mount = self._path(reference), self._settings.mount
            return reference, engine.create_or_update_secret(path, dict(value), cas=0, mount_point=mount)

        reference, answer = self._session.call(act)
        with self._understanding():
            answer["data"]["version"]
        return reference

    def get(self, reference: UUID) -> dict[str, str]:
        def act(engine: Any) -> Any:  # noqa: ANN401
            path, mount = self._path(reference), self._settings.mount
            return engine.read_secret_version(path, mount_point=mount, raise_on_deleted_version=True)

        try:
            answer = self._session.call(act)
        except InvalidPath as error:
            raise SecretMissing(f"Vault does not have the secret {reference}") from error
        with self._understanding():
            answer["data"]["metadata"]["version"]
            return dict(answer["data"]["data"])

    def delete(self, reference: UUID) -> None:
        def act(engine: Any) -> None:  # noqa: ANN401
            engine.delete_metadata_and_all_versions(self._path(reference), mount_point=self._settings.mount)

        with suppress(InvalidPath):
            self._session.call(act)

    def references(self) -> Iterator[tuple[UUID, datetime]]:
        def act(engine: Any) -> Any:  # noqa: ANN401
            return engine.list_secrets(self._folder(), mount_point=self._settings.mount)

        try:
            names = self._session.call(act)["data"]["keys"]
        except InvalidPath:
            return
        for name in names:
            reference = _reference(name)
            if reference is not None:
                seconds = (reference.int >> _BITS_AFTER_THE_TIME) / 1000
                yield reference, datetime.fromtimestamp(seconds, UTC)

    @contextmanager
    def _understanding(self) -> Iterator[None]:
        try:
            yield
        except (TypeError, KeyError) as error:
            raise SecretsUnavailable(f"The engine {self._settings.mount!r} in Vault is not KV of version 2") from error

    def _folder(self) -> str:
        if not self._folder_name:
            self._folder_name = f"{self._settings.path}/{self._installation()}"
        return self._folder_name

    def _path(self, reference: UUID) -> str:
        return f"{self._folder()}/{reference}"


def _reference(name: str) -> UUID | None:
    """None: it was not put by this class."""
    try:
        found = UUID(name)
    except ValueError:
        return None
    return found if found.version == _TIME_ORDERED else None
