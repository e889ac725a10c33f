"""The credentials with which a server uses ADLS."""

import re
from base64 import b64decode
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr, StringConstraints

from lakewarden.storage.credential import StorageCredential

_ID = re.compile(r"[A-Za-z0-9.-]{1,128}")


def _id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError("is not a valid id: letters, digits, '.' and '-' are expected")
    return value


def _base64(value: SecretStr) -> SecretStr:
    try:
        b64decode(value.get_secret_value(), validate=True)
    except ValueError:
        # the cause would contain a part of the key
        raise ValueError("is not a valid key of a storage account: it is not Base64") from None
    return value


# they become a part of an address
Id = Annotated[str, StringConstraints(max_length=128), AfterValidator(_id)]


class ClientCredentials(StorageCredential):
    """A secret of an application that is registered in Microsoft Entra ID."""

    FAMILY: ClassVar = "az"
    KIND: ClassVar = "client-credentials"

    client_id: Id = Field(alias="client-id")
    client_secret: Annotated[SecretStr, Field(min_length=1, max_length=4096)] = Field(alias="client-secret")
    tenant_id: Id = Field(alias="tenant-id")


class SharedAccessKey(StorageCredential):
    """A key of the storage account: it may do everything in the account."""

    FAMILY: ClassVar = "az"
    KIND: ClassVar = "shared-access-key"

    key: Annotated[SecretStr, Field(min_length=1, max_length=4096), AfterValidator(_base64)]


class AzureSystemIdentity(StorageCredential):
    """What the server's machine or pod is for Azure."""

    FAMILY: ClassVar = "az"
    KIND: ClassVar = "azure-system-identity"


AdlsCredential = ClientCredentials | SharedAccessKey | AzureSystemIdentity
