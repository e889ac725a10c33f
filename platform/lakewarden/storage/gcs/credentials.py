"""The credentials with which a server uses Google Cloud Storage."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from lakewarden.storage.credential import StorageCredential

_UNIVERSE = "googleapis.com"


def _text(value: object) -> object:
    """The key is an object in requests, and a text in the secret store."""
    return json.dumps(value) if isinstance(value, Mapping) else value


def _service_account(value: SecretStr) -> SecretStr:
    """No message contains a part of the key, nor does a cause."""
    key = _object(value)
    if key.get("type") != "service_account":
        raise ValueError("type must be 'service_account': download a key of a service account as JSON")
    for name in ("client_email", "private_key", "private_key_id", "project_id"):
        if not isinstance(key.get(name), str) or not key[name]:
            raise ValueError(f"{name} is missing: the whole JSON of the key is expected")
    if key.get("universe_domain", _UNIVERSE) != _UNIVERSE:
        raise ValueError(f"universe_domain must be {_UNIVERSE!r}")
    if not _is_rsa(key["private_key"]):
        raise ValueError("private_key is not a valid RSA key in PEM")
    return value


def _object(value: SecretStr) -> dict[str, Any]:
    try:
        key = json.loads(value.get_secret_value())
    except ValueError:
        raise ValueError("is not valid JSON") from None
    if not isinstance(key, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004 pydantic reads this one
    return key


def _is_rsa(pem: str) -> bool:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 it takes time to load
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        return isinstance(load_pem_private_key(pem.encode(), password=None), RSAPrivateKey)
    except (TypeError, ValueError):
        return False


class ServiceAccountKey(StorageCredential):
    """A key of a service account, as Google writes it."""

    FAMILY: ClassVar = "gcs"
    KIND: ClassVar = "service-account-key"

    key: Annotated[SecretStr, BeforeValidator(_text), Field(max_length=16_384), AfterValidator(_service_account)]

    def fields(self) -> dict[str, Any]:
        """The JSON in clear."""
        return _object(self.key)


class GcpSystemIdentity(StorageCredential):
    """What the server's machine or pod is for Google Cloud."""

    FAMILY: ClassVar = "gcs"
    KIND: ClassVar = "gcp-system-identity"


GcsCredential = ServiceAccountKey | GcpSystemIdentity
