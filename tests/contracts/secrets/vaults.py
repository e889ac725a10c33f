"""Stores in a Vault that runs for the tests."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from lakewarden.config import VaultConfig
from lakewarden.ids import new_id
from lakewarden.secrets.vault import VaultStore
from tests.servers.openbao import FOLDER, MOUNT, PASSWORD, OpenBao


@dataclass
class Vault:
    """The server, and stores of one installation in it."""

    server: OpenBao
    installation: UUID = field(default_factory=new_id)

    def store(self, **settings: Any) -> VaultStore:
        """With these settings of `secrets.vault`; without any, by user and password."""
        login = settings or {"auth": "userpass", "username": "svc", "password": PASSWORD}
        values = {"url": self.server.url, "mount": MOUNT, "path": FOLDER, "timeout_s": 2} | login
        return VaultStore(VaultConfig.model_validate(values), installation=lambda: self.installation)

    def approle(self) -> dict[str, str]:
        """The settings of a new login whose token ends after two seconds, and after six at the latest."""
        role = self.server.call("GET", "auth/approle/role/lakewarden/role-id")["data"]["role_id"]
        secret = self.server.call("POST", "auth/approle/role/lakewarden/secret-id")["data"]["secret_id"]
        return {"auth": "approle", "role_id": role, "secret_id": secret}
