"""The contract of storage profiles: where a warehouse is, and how locations in it are written."""

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from lakewarden.config import StorageConfig
from lakewarden.errors import BadRequest
from lakewarden.storage.client_access import ClientAccess
from lakewarden.storage.credential import StorageCredential, parse_credential
from lakewarden.storage.interface import Storage
from lakewarden.storage.layouts import DEFAULT, Layout, StorageLayout
from lakewarden.storage.request_signing import RequestSigner


class StorageProfile(BaseModel, ABC):
    """A profile of the management API: a further type is a class of its own in `profiles.PROFILES`.

    Locations are URIs. The catalog stores and compares them in the normal form only, in which each location has exactly
    one spelling and a folder has no slash at its end. So a comparison of texts decides whether one contains another
    (see `places`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    LONGEST_NAME: ClassVar[int]
    """In bytes, of one name between two slashes of a location."""
    PLACE_FIELDS: ClassVar[tuple[str, ...]]
    """The fields that say where the files are: they cannot be changed once there are files."""

    SEES_MISSING_FILES: ClassVar[bool]
    """Whether it takes no request to a server to know that a file is gone: `Storage.is_known_missing` tells."""
    CLIENTS_NEED_CONFIG: ClassVar[bool]
    """Whether engines need what `Storage.client_access` returns to reach the files."""
    CREDENTIALS: ClassVar[tuple[type[StorageCredential], ...]] = ()
    """The kinds of credentials that it takes."""

    type: str
    storage_layout: StorageLayout | None = Field(None, alias="storage-layout")

    @property
    def layout(self) -> Layout:
        return self.storage_layout or DEFAULT

    def __hash__(self) -> int:
        """Of what all profiles have: a field of a further type need not have a hash."""
        return hash((self.type, self.location))

    @property
    @abstractmethod
    def location(self) -> str:
        """The warehouse's base location, in the normal form."""

    @property
    def real_location(self) -> str:
        """Where the base location leads to, in the normal form: another one on storage that has links."""
        return self.location

    @abstractmethod
    def normal(self, location: str) -> str:
        """The normal form of any spelling that engines use; StorageError for what is not a location of this storage.

        It need not lie in the warehouse. The normal form of a normal form is the same.
        """

    @abstractmethod
    def ensure_allowed(self, settings: StorageConfig) -> None:
        """Raises InvalidArgument when the operator does not allow warehouses there."""

    def parse_credential(self, value: object) -> StorageCredential | None:
        """The credential of a request, or of the secret store; None: not given.

        Raises BadRequest that names the wrong field, and never its value.
        """
        if value is None:
            return None
        if not self.CREDENTIALS:
            raise BadRequest(f"storage-credential: storage of the type {self.type!r} has none; omit it")
        return parse_credential(value, {kind.KIND: kind for kind in self.CREDENTIALS})

    def ensure_credential(self, credential: StorageCredential | None, settings: StorageConfig) -> None:
        """Raises BadRequest when the profile cannot be used with this credential, or the operator does not allow it."""

    @abstractmethod
    def open(self, credential: StorageCredential | None) -> Storage: ...

    @property
    def access_lasts(self) -> timedelta:
        """For how long an engine can use what it received last; it cannot be taken back."""
        return timedelta(0)

    @property
    def signs_requests(self) -> bool:
        """Whether the server signs requests of engines to the storage: `signer` is only called if it does."""
        return False

    def signer(self, credential: StorageCredential | None) -> RequestSigner:
        raise NotImplementedError

    def open_as_engine(self, access: ClientAccess) -> Storage:
        """As an engine reaches it that has received `access`: it proves what the credentials in it can do."""
        raise NotImplementedError

    def dump(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)

    def field_moved_by(self, after: "StorageProfile") -> str | None:
        """The first field in which `after` has another location; None: files stay where they are."""
        if after.type != self.type:
            return "type"
        mine, others = self.dump(), after.dump()
        return next((name for name in self.PLACE_FIELDS if mine.get(name) != others.get(name)), None)
