"""The object store in memory, with keys that end and a signer, as those of the clouds."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, cast

from lakewarden.storage.client_access import AccessRequest, ClientAccess, Delegation
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.issued_credentials import Issued, IssuedCredentials
from tests.contracts.storage.bucket import BucketProfile


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
        number = sum(each.location == request.location for each in self.asked)
        token = f"{number} {request.level} {request.location} {endpoint}"
        secrets = {"bucket.token": token, "bucket.key": f"{request.level} {request.location}"}
        return Issued(secrets, self.now() + timedelta(hours=1), self.now())


class VendingProfile(BucketProfile):
    KEYS: ClassVar[Keys]

    def open(self, credential: StorageCredential | None) -> Storage:
        return cast("Storage", VendingStorage(super().open(credential), self.endpoint))


class VendingStorage:
    """What another storage does, except for engines."""

    def __init__(self, inner: Storage, endpoint: str) -> None:
        self._inner, self._where = inner, endpoint

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def client_access(self, request: AccessRequest) -> ClientAccess:
        config = {"bucket.endpoint": self._where}
        if request.wanted == {Delegation.CLIENT_MANAGED}:
            return ClientAccess(config)
        if request.wanted == {Delegation.REMOTE_SIGNING}:
            return ClientAccess({**config, "bucket.signer": f"{request.routes.catalog_uri}/{request.routes.sign}"})
        key = (request.location, request.level, self._where)
        keys = VendingProfile.KEYS  # of the present test, in which an opened storage may be an earlier one
        issued = keys.kept.get(key, lambda: keys.issue(request, self._where))
        config["bucket.refresh"] = request.routes.credentials
        return ClientAccess(config, issued.properties, issued.expires_at, issued.fresh_until)
