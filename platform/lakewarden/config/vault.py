"""Settings of a Vault-compatible store of secrets (HashiCorp Vault, OpenBao)."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from lakewarden.config.sections import HttpUri, Section


class VaultConfig(Section):
    """A Vault-compatible server with a KV engine of version 2; not used without `url`."""

    url: HttpUri | None = Field(None, description="Address of the server, for example https://vault.example.org:8200.")
    namespace: str | None = Field(None, min_length=1, description="Namespace of Vault Enterprise or OpenBao.")
    mount: str = Field("secret", pattern=r"^[^/].*[^/]$|^[^/]$", description="Where the KV engine (version 2) is.")
    path: str = Field(
        "lakewarden",
        pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$",
        description="Folder in it. Below it, each installation of Lakewarden keeps its secrets in a folder of its own.",
    )
    auth: Literal["token", "approle", "kubernetes", "userpass"] = Field("token", description="How the server logs in.")
    auth_mount: str | None = Field(
        None, min_length=1, description="Where that method is, if it is not the place with its name."
    )
    token: SecretStr | None = Field(
        None,
        min_length=1,
        description="Token, for `token`. It is renewed when it is used and half of its life is over; the worker uses "
        "it every 20 minutes.",
    )
    token_file: Path | None = Field(
        None, description="A file with the token, in place of `token`; read again when the token is not valid any more."
    )
    role_id: str | None = Field(None, min_length=1, description="Role id, for `approle`.")
    secret_id: SecretStr | None = Field(None, min_length=1, description="Secret id, for `approle`.")
    role: str | None = Field(None, min_length=1, description="Role, for `kubernetes`.")
    jwt_file: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
        description="Token of the pod's service account, for `kubernetes`; read again for each login.",
    )
    username: str | None = Field(None, min_length=1, description="User, for `userpass`.")
    password: SecretStr | None = Field(None, min_length=1, description="Password, for `userpass`.")
    ca_file: Path | None = Field(None, description="Certificates (PEM) to trust in place of the system's.")
    timeout_s: float = Field(
        5, gt=0, le=60, description="Seconds for a connection, and again for an answer; then requests are answered 503."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.url is None:
            return self
        if self.auth == "token" and (self.token is None) == (self.token_file is None):
            raise ValueError("secrets.vault.auth is 'token': set one of secrets.vault.token and …token_file")
        needed = {
            "approle": ("role_id",),
            "kubernetes": ("role",),
            "userpass": ("username", "password"),
        }.get(self.auth, ())
        for name in needed:
            if getattr(self, name) is None:
                raise ValueError(f"secrets.vault.auth is {self.auth!r}, but secrets.vault.{name} is missing: set it")
        return self
