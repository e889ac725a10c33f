"""The object store in memory, with keys that end and a signer, as those of the clouds."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from lakewarden.storage.client_access import AccessRequest, ClientAccess, Delegation
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.issued_credentials import Issued, IssuedCredentials
from tests.contracts.storage.bucket import BucketProfile, BucketStorage


class Keys:
    """What all such stores have issued, and how they behave; `clock` runs `ahead`."""

    def __init__(self) -> None:
        self.asked: list[AccessRequest] = []
        self.ahead = timedelta()
        self.error: str | None = None
        self.kept = IssuedCredentials(100, clock=self.now)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def issue(self, request: AccessRequest, endpoint: str) -> Issued:
        if self.error:
            raise StorageError(self.error)
        self.asked.append(request)
        token = f"{len(self.asked)} {request.level} {request.location} {endpoint}"
        return Issued({"bucket.token": token}, self.now() + timedelta(hours=1), self.now())


class VendingProfile(BucketProfile):
    KEYS: ClassVar[Keys]

    def open(self, credential: StorageCredential | None) -> Storage:  # noqa: ARG002 it has none
        return VendingStorage(self.location, self.endpoint, self.KEYS)


class VendingStorage(BucketStorage):
    def __init__(self, base: str, endpoint: str, keys: Keys) -> None:
        super().__init__(base, endpoint)
        self._where, self._keys = endpoint, keys

    def client_access(self, request: AccessRequest) -> ClientAccess:
        config = {"bucket.endpoint": self._where}
        if request.wanted == {Delegation.CLIENT_MANAGED}:
            return ClientAccess(config)
        if request.wanted == {Delegation.REMOTE_SIGNING}:
            return ClientAccess({**config, "bucket.signer": f"{request.routes.catalog_uri}/{request.routes.sign}"})
        key = (request.location, request.level, self._where)
        issued = self._keys.kept.get(key, lambda: self._keys.issue(request, self._where))
        config["bucket.refresh"] = request.routes.credentials
        return ClientAccess(config, issued.properties, issued.expires_at, issued.fresh_until)
