"""The profile of a warehouse on Google Cloud Storage."""

import re
from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from lakewarden import config
from lakewarden.config import StorageConfig
from lakewarden.errors import BadRequest
from lakewarden.storage.client_access import ClientAccess
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.gcs.boundary import UNSAFE
from lakewarden.storage.gcs.credentials import GcpSystemIdentity, ServiceAccountKey
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.object_locations import normal_location, normal_prefix
from lakewarden.storage.profile import StorageProfile

SCHEME = "gs"

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_TOKENS_LAST = timedelta(hours=1)
"""Google's tokens last no longer, and neither do those that they are exchanged for."""
_ADDRESS = re.compile(r"\d+(\.\d+){3}")


def _bucket(value: str) -> str:
    longest = max(map(len, value.split(".")))
    if not _BUCKET.fullmatch(value) or longest > 63 or _ADDRESS.fullmatch(value):  # noqa: PLR2004 Google's limit
        raise ValueError(f"{value[:80]!r} is not a valid bucket name: 3 to 63 of a-z, 0-9, '-', '_' and '.'")
    return value


def _prefix(value: str | None) -> str | None:
    prefix = normal_prefix(value)
    if prefix and (problem := _problem(prefix)):
        raise ValueError(f"{prefix[:80]!r} {problem}")
    return prefix


def _problem(key: str) -> str | None:
    if any(character in UNSAFE for character in key):
        return "contains a single quote, which the conditions of access boundaries cannot express"
    return None


class GcsProfile(StorageProfile):
    """A bucket, or what lies below a prefix of its keys."""

    LONGEST_NAME: ClassVar = 1024
    PLACE_FIELDS: ClassVar = ("bucket", "key-prefix")
    SEES_MISSING_FILES: ClassVar = False
    CLIENTS_NEED_CONFIG: ClassVar = True
    CREDENTIALS: ClassVar = (ServiceAccountKey, GcpSystemIdentity)

    type: Literal["gcs"]
    bucket: Annotated[str, AfterValidator(_bucket)]
    key_prefix: Annotated[str | None, AfterValidator(_prefix)] = Field(None, alias="key-prefix")
    sts_enabled: bool = Field(True, alias="sts-enabled")  # noqa: FBT003 a default

    @property
    def location(self) -> str:
        return "/".join(filter(None, (f"{SCHEME}://{self.bucket}", self.key_prefix)))

    def normal(self, location: str) -> str:
        normal = normal_location(location, scheme=SCHEME)
        if problem := _problem(normal):
            raise StorageError(f"{location[:200]!r} {problem}")
        return normal

    @property
    def access_lasts(self) -> timedelta:
        return _TOKENS_LAST if self.sts_enabled else timedelta(0)

    def ensure_allowed(self, settings: StorageConfig) -> None:
        pass

    def ensure_credential(self, credential: StorageCredential | None, settings: StorageConfig) -> None:
        if credential is None:
            raise BadRequest("storage-credential is missing: storage of the type 'gcs' needs one")
        if isinstance(credential, GcpSystemIdentity) and not settings.gcs.system_identity:
            raise BadRequest(
                "storage-credential: gcp-system-identity is not allowed on this server "
                "(setting storage.gcs.system_identity)"
            )

    def open(self, credential: StorageCredential | None) -> Storage:
        from lakewarden.storage.gcs.storage import GcsStorage  # noqa: PLC0415 its libraries take time to load

        if not isinstance(credential, ServiceAccountKey | GcpSystemIdentity):
            raise StorageError(f"The bucket {self.bucket} has no storage credential: set one")
        return GcsStorage(self, credential, config.current().storage)

    def open_as_engine(self, access: ClientAccess) -> Storage:
        """As an engine reaches it that has received `access`: it proves what the credentials in it can do."""
        from lakewarden.storage.gcs.storage import GcsStorage, IssuedToken  # noqa: PLC0415 as above

        return GcsStorage(self, IssuedToken.of(access), config.current().storage)
