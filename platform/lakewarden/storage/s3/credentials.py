"""The credentials with which a server uses S3 and stores that are compatible with it."""

from typing import Annotated, ClassVar

from pydantic import AliasChoices, Field, SecretStr, StringConstraints

from lakewarden.storage.credential import StorageCredential

Text = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=4096)]


class AccessKey(StorageCredential):
    """A key of a user of the store."""

    FAMILY: ClassVar = "s3"
    KIND: ClassVar = "access-key"

    access_key_id: Text = Field(
        validation_alias=AliasChoices("access-key-id", "aws-access-key-id", "access_key_id"),
    )
    secret_access_key: Secret = Field(
        validation_alias=AliasChoices("secret-access-key", "aws-secret-access-key", "secret_access_key"),
    )
    external_id: Text | None = Field(None, validation_alias=AliasChoices("external-id", "external_id"))


class AwsSystemIdentity(StorageCredential):
    """What the server's machine, container or pod is for AWS."""

    FAMILY: ClassVar = "s3"
    KIND: ClassVar = "aws-system-identity"

    external_id: Text | None = Field(None, validation_alias=AliasChoices("external-id", "external_id"))


class CloudflareR2(StorageCredential):
    """A key of Cloudflare R2, and the API token with which temporary ones are issued."""

    FAMILY: ClassVar = "s3"
    KIND: ClassVar = "cloudflare-r2"

    account_id: Text = Field(validation_alias=AliasChoices("account-id", "account_id"))
    access_key_id: Text = Field(validation_alias=AliasChoices("access-key-id", "access_key_id"))
    secret_access_key: Secret = Field(validation_alias=AliasChoices("secret-access-key", "secret_access_key"))
    token: Secret


S3Credential = AccessKey | AwsSystemIdentity | CloudflareR2
