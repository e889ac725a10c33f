"""The profile of a warehouse on Azure Data Lake Storage Gen2."""

import re
from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from lakewarden import config
from lakewarden.config import StorageConfig
from lakewarden.errors import BadRequest, InvalidArgument
from lakewarden.storage.adls.credentials import (
    AzureSystemIdentity,
    ClientCredentials,
    SharedAccessKey,
)
from lakewarden.storage.adls.locations import SCHEME, normal_adls_location, problem_of
from lakewarden.storage.client_access import ClientAccess
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.object_locations import normal_prefix
from lakewarden.storage.profile import StorageProfile

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_FILESYSTEM = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_HOST = re.compile(r"dfs(\.[a-z0-9-]+)+|[a-z0-9-]+\.dfs(\.[a-z0-9-]+)+")


def _account(value: str) -> str:
    if not _ACCOUNT.fullmatch(value):
        raise ValueError(f"{value[:80]!r} is not a valid name of a storage account: 3 to 24 of a-z and 0-9")
    return value


def _filesystem(value: str) -> str:
    if not _FILESYSTEM.fullmatch(value):
        raise ValueError(
            f"{value[:80]!r} is not a valid name of a filesystem: 3 to 63 of a-z, 0-9 and single '-', not at the ends"
        )
    return value


def _prefix(value: str | None) -> str | None:
    prefix = normal_prefix(value)
    if prefix and (problem := problem_of(prefix)):
        raise ValueError(f"{prefix[:80]!r} {problem}")
    return prefix


def _host(value: str) -> str:
    host = value.lower().rstrip(".")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{value[:80]!r} is not a valid host of ADLS, for example dfs.core.windows.net")
    return host


def _authority(value: str) -> str:
    """With the scheme, without a slash at its end: both spellings are in use."""
    address = value if "://" in value else f"https://{value}"
    return address.rstrip("/").lower()


class AdlsProfile(StorageProfile):
    """A filesystem (a container, in the words of blob storage), or what lies below a prefix in it."""

    LONGEST_NAME: ClassVar = 1024
    PLACE_FIELDS: ClassVar = ("account-name", "filesystem", "host", "key-prefix")
    SEES_MISSING_FILES: ClassVar = False
    CLIENTS_NEED_CONFIG: ClassVar = True
    CREDENTIALS: ClassVar = (ClientCredentials, SharedAccessKey, AzureSystemIdentity)

    type: Literal["adls"]
    account_name: Annotated[str, AfterValidator(_account)] = Field(alias="account-name")
    filesystem: Annotated[str, AfterValidator(_filesystem)]
    key_prefix: Annotated[str | None, AfterValidator(_prefix)] = Field(None, alias="key-prefix")
    host: Annotated[str, AfterValidator(_host)] = "dfs.core.windows.net"
    authority_host: Annotated[str, AfterValidator(_authority)] = Field(
        "https://login.microsoftonline.com", max_length=255, alias="authority-host"
    )
    sas_enabled: bool = Field(True, alias="sas-enabled")  # noqa: FBT003 a default
    sas_token_validity_seconds: int = Field(3600, ge=300, le=7 * 86_400, alias="sas-token-validity-seconds")
    allow_alternative_protocols: bool = Field(False, alias="allow-alternative-protocols")  # noqa: FBT003

    @property
    def account_host(self) -> str:
        return f"{self.account_name}.{self.host}"

    @property
    def location(self) -> str:
        return "/".join(filter(None, (f"{SCHEME}://{self.filesystem}@{self.account_host}", self.key_prefix)))

    def normal(self, location: str) -> str:
        return normal_adls_location(location, allow_alternatives=self.allow_alternative_protocols)

    @property
    def access_lasts(self) -> timedelta:
        return timedelta(seconds=self.sas_token_validity_seconds if self.sas_enabled else 0)

    def ensure_allowed(self, settings: StorageConfig) -> None:
        """The host and the authority are the operator's: the server sends them tokens, keys and secrets."""
        azure = settings.azure
        if self.host not in azure.hosts:
            raise InvalidArgument(
                f"host {self.host!r} is not one of the server's storage.azure.hosts ({', '.join(azure.hosts)})"
            )
        if self.authority_host not in azure.authorities:
            raise InvalidArgument(
                f"authority-host {self.authority_host[:80]!r} is not one of the server's storage.azure.authorities "
                f"({', '.join(azure.authorities)})"
            )

    def ensure_credential(self, credential: StorageCredential | None, settings: StorageConfig) -> None:
        if credential is None:
            raise BadRequest("storage-credential is missing: storage of the type 'adls' needs one")
        if isinstance(credential, AzureSystemIdentity) and not settings.azure.system_identity:
            raise BadRequest(
                "storage-credential: azure-system-identity is not allowed on this server "
                "(setting storage.azure.system_identity)"
            )

    def open(self, credential: StorageCredential | None) -> Storage:
        from lakewarden.storage.adls.storage import AdlsStorage  # noqa: PLC0415 its libraries take time to load

        if not isinstance(credential, ClientCredentials | SharedAccessKey | AzureSystemIdentity):
            raise StorageError(f"The filesystem {self.filesystem} has no storage credential: set one")
        return AdlsStorage(self, credential, config.current().storage)

    def open_as_engine(self, access: ClientAccess) -> Storage:
        """As an engine reaches it that has received `access`: it proves what the credentials in it can do."""
        from lakewarden.storage.adls.storage import AdlsStorage, IssuedSignature  # noqa: PLC0415 as above

        return AdlsStorage(self, IssuedSignature.of(access), config.current().storage)
