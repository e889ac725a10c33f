"""Which clouds' services a server uses, and where they are."""

from pydantic import Field

from lakewarden.config.sections import HttpUri, Names, Section


class AwsConfig(Section):
    system_identity: bool = Field(
        False,  # noqa: FBT003 a default
        description="Whether warehouses may use the server's own identity in AWS (`aws-system-identity`). Whoever may "
        "create a warehouse reaches all that this identity may reach.",
    )
    system_identity_needs_role: bool = Field(
        True,  # noqa: FBT003
        description="Whether a warehouse that uses the server's own identity must name a role to assume.",
    )
    system_identity_needs_external_id: bool = Field(
        True,  # noqa: FBT003
        description="Whether a warehouse that uses the server's own identity must give an external id.",
    )
    endpoints: Names = Field(
        (),
        description="The only values that `endpoint` and `sts-endpoint` of profiles may have, such as "
        "https://minio.example.org:9000: whoever may create a warehouse lets the server send requests there. Empty: "
        "all that are not link-local addresses, where clouds offer machines their credentials.",
    )
    signing_max_uri_characters: int = Field(
        8192, ge=1024, le=65_536, description="Longest URI of a request to S3 that the server signs, in characters."
    )
    signing_max_headers: int = Field(
        100, ge=10, le=1000, description="Most headers of a request to S3 that the server signs."
    )
    signing_max_header_bytes: int = Field(
        16 * 1024,
        ge=1024,
        le=256 * 1024,
        description="Largest headers of a request to S3 that the server signs: all names and values together, in "
        "characters.",
    )


class AzureConfig(Section):
    system_identity: bool = Field(
        False,  # noqa: FBT003 a default
        description="Whether warehouses may use the server's own identity in Azure. Whoever may create a warehouse "
        "reaches all that this identity may reach.",
    )
    tenant_id: str | None = Field(None, description="Of the server's own identity, with `federated_token_file`.")
    client_id: str | None = Field(
        None,
        description="Of the server's own identity: needed with `federated_token_file`, or if a machine has several.",
    )
    federated_token_file: str | None = Field(
        None,
        description="A file with the service account's token in Kubernetes (Microsoft Entra Workload ID); without it "
        "the server's own identity is the machine's (managed identity).",
    )
    identity_endpoint: HttpUri = Field(
        "http://169.254.169.254/metadata/identity/oauth2/token",
        description="Where a machine of Azure asks for the tokens of its identity.",
    )
    hosts: Names = Field(
        (
            "dfs.core.windows.net",
            "dfs.core.usgovcloudapi.net",
            "dfs.core.chinacloudapi.cn",
        ),
        description="Values that the `host` of a profile may have: only they receive tokens and keys. Add the host of "
        "an Azure DNS zone, such as z01.dfs.storage.azure.net.",
    )
    authorities: Names = Field(
        ("https://login.microsoftonline.com", "https://login.microsoftonline.us", "https://login.chinacloudapi.cn"),
        description="Values that the `authority-host` of a profile may have: only they receive client secrets.",
    )
    blob_endpoint: HttpUri | None = Field(
        None,
        description="Where the blob service is, if not at https://<account>.blob.<host>: for emulators such as "
        "Azurite. `{account}` stands for the account's name.",
    )
    clock_skew_s: int = Field(
        300,
        ge=0,
        le=3600,
        description="How long before its issue a shared access signature is valid, in seconds: for clocks that differ.",
    )


class GcsConfig(Section):
    system_identity: bool = Field(
        False,  # noqa: FBT003 a default
        description="Whether warehouses may use the server's own identity in Google Cloud. Whoever may create a "
        "warehouse reaches all that this identity may reach.",
    )
    endpoint: HttpUri = Field(
        "https://storage.googleapis.com", description="Of Cloud Storage: another one for emulators and private access."
    )
    token_endpoint: HttpUri = Field(
        "https://oauth2.googleapis.com/token",
        description="Where service accounts receive tokens. The `token_uri` in a key is not used: whoever writes the "
        "key would decide where the server sends requests.",
    )
    exchange_endpoint: HttpUri = Field(
        "https://sts.googleapis.com/v1/token", description="Where tokens are exchanged for those of one table."
    )
    identity_endpoint: HttpUri = Field(
        "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token",
        description="Where a machine or pod of Google Cloud asks for the tokens of its identity.",
    )
