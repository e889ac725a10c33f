"""The profile of a warehouse on S3, or on a store that is compatible with it."""

import re
from datetime import timedelta
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from lakewarden import config
from lakewarden.config import StorageConfig
from lakewarden.errors import BadRequest
from lakewarden.storage.client_access import ClientAccess
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.object_locations import normal_location, normal_prefix
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.request_signing import RequestSigner
from lakewarden.storage.s3 import endpoints
from lakewarden.storage.s3.credentials import AccessKey, AwsSystemIdentity, CloudflareR2, S3Credential
from lakewarden.storage.s3.issued_keys import IssuedKeys

SCHEME = "s3"
ALTERNATIVES = ("s3a", "s3n")
"""Schemes of Hadoop that mean the same, where the profile allows them."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ROLE = re.compile(r"arn:[\w-]+:iam:[\w-]*:[\w-]*:role/\S+")
_COMPATIBLE = {"minio": "s3-compat"}
_SIGNATURES_LAST = timedelta(minutes=15)
"""S3 refuses a signed request whose time differs more from its own."""


def _bucket(value: str) -> str:
    if not _BUCKET.fullmatch(value):
        raise ValueError(f"{value[:80]!r} is not a valid bucket name: 3 to 63 of a-z, 0-9, '.' and '-'")
    return value


def _endpoint(value: str) -> str:
    parts = urlsplit(value)
    if "@" in value:
        raise ValueError("must not contain a user or a password: keys are sent as storage-credential")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        shown = value.partition("?")[0][:200]  # what follows may be a signature
        raise ValueError(f"{shown!r} is not a valid endpoint, for example https://s3.example.org")
    return value.rstrip("/")


def _role(value: str) -> str:
    if not _ROLE.fullmatch(value):
        raise ValueError(f"{value[:200]!r} is not a valid role, for example arn:aws:iam::123456789012:role/lakehouse")
    return value


Endpoint = Annotated[
    str, StringConstraints(max_length=2048), AfterValidator(_endpoint), AfterValidator(endpoints.one_reading)
]
Role = Annotated[str, StringConstraints(max_length=2048), AfterValidator(_role)]
Flavor = Annotated[
    Literal["aws", "s3-compat"],
    BeforeValidator(lambda value: _COMPATIBLE.get(value, value) if isinstance(value, str) else value),
]


UrlStyle = Annotated[
    Literal["auto", "path", "virtual-host"],
    BeforeValidator(lambda value: "virtual-host" if value == "virtual_host" else value),
]


class S3Profile(StorageProfile):
    """A bucket, or what lies below a prefix of its keys."""

    LONGEST_NAME: ClassVar = 1024
    PLACE_FIELDS: ClassVar = ("bucket", "key-prefix")
    SEES_MISSING_FILES: ClassVar = False
    CLIENTS_NEED_CONFIG: ClassVar = True
    CREDENTIALS: ClassVar = (AccessKey, AwsSystemIdentity, CloudflareR2)

    type: Literal["s3"]
    bucket: Annotated[str, AfterValidator(_bucket)]
    region: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[a-zA-Z0-9-]+$")]
    key_prefix: Annotated[str | None, AfterValidator(normal_prefix)] = Field(None, alias="key-prefix")
    endpoint: Endpoint | None = None
    client_endpoint: Endpoint | None = Field(None, alias="client-endpoint")
    """Under which engines reach the store, if it is another one than the server's."""
    flavor: Flavor = "aws"
    path_style_access: bool | None = Field(None, alias="path-style-access")
    sts_enabled: bool = Field(alias="sts-enabled")
    assume_role_arn: Role | None = Field(None, alias="assume-role-arn")
    sts_role_arn: Role | None = Field(None, alias="sts-role-arn")
    sts_endpoint: Endpoint | None = Field(None, alias="sts-endpoint")
    sts_token_validity_seconds: int = Field(3600, ge=900, le=43200, alias="sts-token-validity-seconds")
    sts_session_tags: dict[str, str] = Field(default_factory=dict, max_length=50, alias="sts-session-tags")
    remote_signing_enabled: bool = Field(True, alias="remote-signing-enabled")  # noqa: FBT003 a default
    remote_signing_url_style: UrlStyle = Field(
        "auto",
        alias="remote-signing-url-style",
    )
    push_s3_delete_disabled: bool = Field(True, alias="push-s3-delete-disabled")  # noqa: FBT003
    delete_old_versions: bool = Field(False, alias="delete-old-versions")  # noqa: FBT003
    """Whether a purge removes earlier versions, too, in a bucket that keeps them."""
    allow_alternative_protocols: bool = Field(False, alias="allow-alternative-protocols")  # noqa: FBT003
    aws_kms_key_arn: str | None = Field(None, max_length=2048, alias="aws-kms-key-arn")
    legacy_md5_behavior: bool = Field(False, alias="legacy-md5-behavior")  # noqa: FBT003

    @model_validator(mode="after")
    def _has_a_role(self) -> Self:
        if self.sts_enabled and self.flavor == "aws" and not (self.sts_role_arn or self.assume_role_arn):
            raise ValueError(
                "sts-enabled: AWS issues credentials for a role only: set sts-role-arn or assume-role-arn, "
                "or sts-enabled to false"
            )
        return self

    @property
    def uses_path_style(self) -> bool:
        """Whether URLs have the bucket in their path; by default where its name may not fit into the host's."""
        if self.path_style_access is None:
            return self.flavor != "aws" or "." in self.bucket
        return self.path_style_access

    @property
    def s3_url(self) -> str:
        """Where the server reaches S3."""
        return self.endpoint or f"https://s3.{self.region}.{_domain(self.region)}"

    @property
    def sts_url(self) -> str:
        """Where the token service is: of AWS in the region, of other stores beside S3."""
        is_beside = self.endpoint and not (self.flavor == "aws" and endpoints.is_of_aws(self.endpoint))
        beside = self.endpoint if is_beside else None
        return self.sts_endpoint or beside or f"https://sts.{self.region}.{_domain(self.region)}"

    @property
    def own_endpoints(self) -> dict[str, str]:
        """Those to which the server itself sends requests, by their fields."""
        named = {"endpoint": self.endpoint, "sts-endpoint": self.sts_endpoint}
        return {field: endpoint for field, endpoint in named.items() if endpoint}

    @property
    def location(self) -> str:
        """The same by whichever endpoint the bucket is reached."""
        return "/".join(filter(None, (f"{SCHEME}://{self.bucket}", self.key_prefix)))

    def normal(self, location: str) -> str:
        alternatives = ALTERNATIVES if self.allow_alternative_protocols else ()
        return normal_location(location, scheme=SCHEME, alternatives=alternatives)

    @property
    def is_of_aws(self) -> bool:
        """Whether the store is AWS's own: it refuses headers that were added to a signed request."""
        named = [each for each in (self.endpoint, self.client_endpoint) if each]
        return self.flavor == "aws" and all(map(endpoints.is_of_aws, named))

    def ensure_allowed(self, settings: StorageConfig) -> None:
        """Of the endpoints that the server itself uses; engines reach others by their own network."""
        for field, endpoint in self.own_endpoints.items():
            endpoints.ensure_allowed(field, endpoint, settings.aws.endpoints)

    def ensure_credential(self, credential: StorageCredential | None, settings: StorageConfig) -> None:
        if credential is None:
            raise BadRequest("storage-credential is missing: storage of the type 's3' needs one")
        if isinstance(credential, AwsSystemIdentity):
            self._ensure_identity(credential, settings)
        if isinstance(credential, CloudflareR2) and not (
            self.flavor == "s3-compat" and self.sts_enabled and self.endpoint
        ):
            raise BadRequest(
                "storage-credential: 'cloudflare-r2' needs a storage profile with flavor 's3-compat', "
                "sts-enabled true and the account's endpoint"
            )

    def open(self, credential: StorageCredential | None) -> Storage:
        from lakewarden.storage.s3.storage import S3Storage  # noqa: PLC0415 its libraries take time to load

        return S3Storage(self, _given(credential, self.bucket), config.current().storage)

    @property
    def access_lasts(self) -> timedelta:
        keys = timedelta(seconds=self.sts_token_validity_seconds if self.sts_enabled else 0)
        return max(keys, _SIGNATURES_LAST if self.remote_signing_enabled else timedelta(0))

    @property
    def signs_requests(self) -> bool:
        return self.remote_signing_enabled

    def signer(self, credential: StorageCredential | None) -> RequestSigner:
        from lakewarden.storage.s3.request_signer import S3RequestSigner  # noqa: PLC0415 its libraries take time to load
        from lakewarden.storage.s3.server_keys import server_keys  # noqa: PLC0415
        from lakewarden.storage.s3.signing_headers import Bounds  # noqa: PLC0415

        settings = config.current().storage
        aws = settings.aws
        bounds = Bounds(aws.signing_max_uri_characters, aws.signing_max_headers, aws.signing_max_header_bytes)
        return S3RequestSigner(self, server_keys(self, _given(credential, self.bucket), settings), bounds)

    def open_as_engine(self, access: ClientAccess) -> Storage:
        from lakewarden.storage.s3.storage import S3Storage  # noqa: PLC0415 as above

        return S3Storage(self, IssuedKeys.of(access), config.current().storage)

    def _ensure_identity(self, credential: AwsSystemIdentity, settings: StorageConfig) -> None:
        if not settings.aws.system_identity:
            raise BadRequest(
                "storage-credential: 'aws-system-identity' is switched off on this server (storage.aws.system_identity)"
            )
        if settings.aws.system_identity_needs_role and not self.assume_role_arn:
            raise BadRequest(
                "assume-role-arn: it is needed with 'aws-system-identity' (storage.aws.system_identity_needs_role)"
            )
        if settings.aws.system_identity_needs_external_id and not credential.external_id:
            raise BadRequest(
                "external-id: it is needed with 'aws-system-identity' (storage.aws.system_identity_needs_external_id)"
            )


def _given(credential: StorageCredential | None, bucket: str) -> S3Credential:
    if not isinstance(credential, AccessKey | AwsSystemIdentity | CloudflareR2):
        raise StorageError(f"The bucket {bucket} has no storage credential: set one")
    return credential


def _domain(region: str) -> str:
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
