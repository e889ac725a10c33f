"""Opens the storage of a bucket: plain requests for single objects, AWS's library for lists and removals."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakewarden.config import StorageConfig
from lakewarden.storage.client_access import AccessRequest, ClientAccess
from lakewarden.storage.interface import StorageError
from lakewarden.storage.object_store import ObjectStorage
from lakewarden.storage.s3.advice import advice
from lakewarden.storage.s3.client_access import S3ClientAccess
from lakewarden.storage.s3.credentials import S3Credential
from lakewarden.storage.s3.endpoints import EndpointsInUse
from lakewarden.storage.s3.issued_keys import IssuedKeys
from lakewarden.storage.s3.listing import S3Listing, with_md5, without_redirects
from lakewarden.storage.s3.object_requests import s3_requests
from lakewarden.storage.s3.server_keys import ServerKeys, request_config, server_keys
from lakewarden.storage.s3.versions import S3VersionsListing

if TYPE_CHECKING:
    from lakewarden.storage.s3.profile import S3Profile

_ENCRYPTION = "x-amz-server-side-encryption"
_CONNECTIONS = 64
"""At most, of lists and removals: as many as a purge may do at once."""


class S3Storage(ObjectStorage):
    def __init__(self, profile: "S3Profile", credential: S3Credential | IssuedKeys, settings: StorageConfig) -> None:
        keys = server_keys(profile, credential, settings)
        endpoints = EndpointsInUse(profile.own_endpoints, settings.aws.endpoints)

        def prepare() -> None:
            endpoints.ensure_allowed()
            keys.ensure_there()

        super().__init__(
            s3_requests(profile, _address(profile), keys, settings),
            _listing(profile, keys, settings),
            base=profile.location,
            normal=profile.normal,
            advice=advice,
            settings=settings,
            prepare=prepare,
        )
        self._writing = {"if-none-match": "*"}
        if profile.aws_kms_key_arn:
            self._writing |= {f"{_ENCRYPTION}": "aws:kms", f"{_ENCRYPTION}-aws-kms-key-id": profile.aws_kms_key_arn}
        if isinstance(credential, IssuedKeys):
            self._access: S3ClientAccess | None = None
        else:
            self._access = S3ClientAccess(profile, credential, settings)

    def _send_new(self, key: str, content: bytes) -> None:
        self._requests.send("PUT", key, headers=self._writing, body=content, retries=0)

    def client_access(self, request: AccessRequest) -> ClientAccess:
        self._place(request.location)
        if self._access is None:
            raise StorageError("Keys that were issued to an engine issue no further ones")
        return self._access.of(request)


def _address(profile: "S3Profile") -> str:
    """Of the bucket."""
    if profile.uses_path_style:
        return f"{profile.s3_url}/{profile.bucket}"
    parts = urlsplit(profile.s3_url)
    return parts._replace(netloc=f"{profile.bucket}.{parts.netloc}").geturl()


def _listing(profile: "S3Profile", keys: ServerKeys, settings: StorageConfig) -> S3Listing:
    config = request_config(
        settings,
        s3={"addressing_style": "path" if profile.uses_path_style else "virtual"},
        max_pool_connections=_CONNECTIONS,
        # older compatible stores refuse requests with other checksums
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )

    def connect() -> Any:  # noqa: ANN401 made by botocore
        client = keys.client("s3", region=profile.region, endpoint=profile.s3_url, config=config)
        without_redirects(client)
        if profile.legacy_md5_behavior:
            with_md5(client)
        return client

    kind = S3VersionsListing if profile.delete_old_versions else S3Listing
    return kind(connect, profile.bucket)
