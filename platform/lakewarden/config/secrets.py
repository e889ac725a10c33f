"""Settings of the store of secrets: where the credentials of warehouses are kept."""

import os
import re
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from lakewarden.config.sections import Section
from lakewarden.config.vault import VaultConfig

KEY_BYTES = 32
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LEAST_VARIETY = 8
"""Different bytes: 32 random ones have fewer than that once in 10^40."""
_MAKE_ONE = "`lakewarden secrets new-key` prints a new one"


def new_key(key_id: str) -> str:
    """A random key, as the settings take it. Raises ValueError for an id that is not valid."""
    _check_id(key_id)
    return f"{key_id}:{b64encode(os.urandom(KEY_BYTES)).decode()}"


def parse_keys(text: str) -> dict[str, bytes]:
    """Keys by id, in the order of the text: `id:base64`, separated by commas or white space; `#` begins a comment.

    Raises ValueError, which never contains a key.
    """
    keys: dict[str, bytes] = {}
    for entry in re.sub(r"#.*", "", text).replace(",", " ").split():
        key_id, separator, encoded = entry.partition(":")
        if not separator:
            raise ValueError(f"a key is written as <id>:<base64 of {KEY_BYTES} bytes>; {_MAKE_ONE}")
        _check_id(key_id)
        if key_id in keys:
            raise ValueError(f"the key {key_id!r} is given twice")
        keys[key_id] = _decoded(key_id, encoded)
    if not keys:
        raise ValueError(f"there is no key in it; {_MAKE_ONE}")
    return keys


def _check_id(key_id: str) -> None:
    if not _ID.fullmatch(key_id):
        raise ValueError("the id of a key is 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-'")


def _decoded(key_id: str, encoded: str) -> bytes:
    try:
        key = b64decode(encoded, validate=True)
    except ValueError:
        raise ValueError(f"the key {key_id!r} is not valid base64; {_MAKE_ONE}") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"the key {key_id!r} has {len(key)} bytes, {KEY_BYTES} are expected; {_MAKE_ONE}")
    if len(set(key)) < _LEAST_VARIETY:
        raise ValueError(f"the key {key_id!r} is not random; {_MAKE_ONE}")
    return key


def _valid(value: SecretStr) -> SecretStr:
    parse_keys(value.get_secret_value())
    return value


class SecretsConfig(Section):
    """Where the credentials of warehouses are kept."""

    backend: Literal["database", "vault"] = Field(
        "database",
        description="Where new secrets are kept: in the database, encrypted with `secrets.keys`, or in Vault. Those "
        "that are in the other place are still found if it is configured; `lakewarden secrets move` moves them.",
    )
    keys: Annotated[SecretStr, AfterValidator(_valid)] | None = Field(
        None,
        description="Keys for secrets in the database, each as `<id>:<base64 of 32 bytes>`, separated by commas. The "
        "first one encrypts, all of them decrypt. `lakewarden secrets new-key` prints a new one; there is no default. "
        "Whoever loses the keys loses the secrets, so keep a copy apart from the database's backups.",
    )
    keys_file: Path | None = Field(
        None,
        description="A file with keys, one in a line, in place of `secrets.keys`. It is read when a process starts.",
    )
    vault: VaultConfig = Field(default_factory=VaultConfig)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.keys is not None and self.keys_file is not None:
            raise ValueError("secrets.keys and secrets.keys_file are both set: set one of them")
        if self.in_vault and self.vault.url is None:
            raise ValueError("secrets.backend is 'vault', but secrets.vault.url is missing: set its address")
        return self

    @property
    def in_vault(self) -> bool:
        return self.backend == "vault"
