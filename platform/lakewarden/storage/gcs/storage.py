"""Opens the storage of a bucket of Google Cloud Storage, by its JSON API."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from lakewarden.config import StorageConfig
from lakewarden.storage.bearer_tokens import BearerToken, BearerTokens
from lakewarden.storage.client_access import AccessRequest, ClientAccess, Delegation
from lakewarden.storage.gcs.advice import advice
from lakewarden.storage.gcs.credentials import GcsCredential, ServiceAccountKey
from lakewarden.storage.gcs.identities import tokens_of
from lakewarden.storage.gcs.listing import GcsListing, fault_of
from lakewarden.storage.gcs.vending import DownscopedTokens
from lakewarden.storage.issued_credentials import Issued, of_this_process
from lakewarden.storage.object_requests import ObjectRequests, Proof
from lakewarden.storage.object_store import ObjectStorage

if TYPE_CHECKING:
    from lakewarden.storage.gcs.profile import GcsProfile


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """What an engine has received, to try what it can do."""

    token: BearerToken

    @classmethod
    def of(cls, access: ClientAccess) -> Self:
        end = access.expires_at or datetime.max.replace(tzinfo=UTC)
        return cls(BearerToken(access.credentials["gcs.oauth2.token"], end))


class GcsStorage(ObjectStorage):
    def __init__(self, profile: "GcsProfile", credential: GcsCredential | IssuedToken, settings: StorageConfig) -> None:
        if isinstance(credential, IssuedToken):
            tokens = BearerTokens(lambda: credential.token, margin=timedelta(0))
        else:
            tokens = tokens_of(credential, settings=settings.gcs, timeout_s=settings.token_timeout_s)
        requests = _requests(profile, tokens, settings)
        super().__init__(
            requests,
            GcsListing(requests),
            base=profile.location,
            normal=profile.normal,
            advice=advice,
            settings=settings,
            prepare=tokens.current,
        )
        self._profile = profile
        # whatever is issued belongs to the profile and the credential with which this was opened
        self._identity = object()
        self._service = settings.gcs.exchange_endpoint
        self._uploads = _requests(profile, tokens, settings, service="/upload")
        self._issuer = DownscopedTokens(
            tokens,
            bucket=profile.bucket,
            project=credential.fields()["project_id"] if isinstance(credential, ServiceAccountKey) else None,
            exchange_endpoint=settings.gcs.exchange_endpoint,
            timeout_s=settings.token_timeout_s,
        )

    def _send_new(self, key: str, content: bytes) -> None:
        query = {"uploadType": "media", "name": key, "ifGenerationMatch": "0"}
        headers = {"Content-Type": "application/octet-stream"}
        self._uploads.send("POST", query=query, headers=headers, body=content, retries=0)

    def _get(self, key: str, most: int) -> bytes:
        return self._requests.send("GET", key, query={"alt": "media"}, most=most).data

    def client_access(self, request: AccessRequest) -> ClientAccess:
        key = self._key(request.location)
        if not self._profile.sts_enabled or request.wanted == {Delegation.CLIENT_MANAGED}:
            return ClientAccess()
        issued = of_this_process().get(
            (self._identity, key, request.level),
            lambda: Issued(*self._issuer.issue(key, request.level)),
            service=self._service,
        )
        config = {"gcs.oauth2.refresh-credentials-endpoint": request.routes.credentials}
        return ClientAccess(config, issued.properties, issued.expires_at, issued.fresh_until)


def _requests(
    profile: "GcsProfile",
    tokens: BearerTokens,
    settings: StorageConfig,
    *,
    service: str = "",
) -> ObjectRequests:
    """To the objects of the bucket."""

    def authorize(*_: object) -> Proof:
        return {}, {"Authorization": f"Bearer {tokens.current().value}"}

    address = f"{settings.gcs.endpoint.rstrip('/')}{service}/storage/v1/b/{quote(profile.bucket, safe='')}/o"
    return ObjectRequests(address, authorize=authorize, fault_of=fault_of, settings=settings)
