"""The object store in memory with a lock: it opens to one key of its own at a time, as a store of a company does."""

from typing import ClassVar, Literal

from pydantic import SecretStr

from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage, StorageError
from tests.contracts.storage.bucket import BucketProfile, BucketStorage

KEY: list[str] = []
"""The key that the store accepts now."""


class BucketKey(StorageCredential):
    FAMILY: ClassVar = "locked-bucket"
    KIND: ClassVar = "key"

    key: SecretStr


class LockedBucketProfile(BucketProfile):
    CREDENTIALS: ClassVar = (BucketKey,)

    type: Literal["locked-bucket"]  # type: ignore[assignment]

    def open(self, credential: StorageCredential | None) -> Storage:
        if not isinstance(credential, BucketKey):
            raise StorageError("a key is needed")
        return LockedBucketStorage(self.location, self.endpoint, credential)


class LockedBucketStorage(BucketStorage):
    def __init__(self, base: str, endpoint: str, credential: BucketKey) -> None:
        super().__init__(base, endpoint)
        self._key = credential.key.get_secret_value()

    def _place(self, location: str) -> str:
        if [self._key] != KEY:
            raise StorageError("The store does not accept this key")
        return super()._place(location)
