"""The forms of a new warehouse, by type of storage, and what the management API would receive for them. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Field:
    """`name` as in the profile or credential. `kind`: text, secret, check or choice; `only` is a type of credential."""

    name: str
    label: str
    hint: str = ""
    kind: str = "text"
    options: tuple[str, ...] = ()
    required: bool = False
    only: str = ""


@dataclass(frozen=True, slots=True)
class Storage:
    """A type of storage. `family` is the type of its credentials; empty: it has none."""

    title: str
    text: str
    profile: tuple[Field, ...]
    family: str = ""
    credential: tuple[Field, ...] = ()
    kinds: tuple[str, ...] = ()


_PREFIX: Final = Field("key-prefix", "Folder in it", "Optional. Leave it empty to use the whole bucket")
STORAGES: Final[dict[str, Storage]] = {
    "s3": Storage(
        "S3",
        "Amazon S3, MinIO, Ceph, Cloudflare R2 and others that speak S3",
        (
            Field("bucket", "Bucket", "It must exist", required=True),
            Field(
                "region",
                "Region",
                "For example eu-central-1; stores of your own often call it us-east-1",
                required=True,
            ),
            _PREFIX,
            Field("endpoint", "Endpoint", "Only for stores other than Amazon's, for example https://s3.example.org"),
            Field("flavor", "Kind of store", kind="choice", options=("aws", "s3-compat")),
            Field("path-style-access", "The bucket is a part of the path, not of the host's name", kind="check"),
            Field("sts-enabled", "Engines receive keys of their own for one table (STS)", kind="check"),
            Field("sts-role-arn", "Role for engines", "With STS of Amazon: arn:aws:iam::123456789012:role/lakehouse"),
        ),
        "s3",
        (
            Field("access-key-id", "Access key", only="access-key"),
            Field("secret-access-key", "Secret key", kind="secret", only="access-key"),
        ),
        ("access-key", "aws-system-identity"),
    ),
    "adls": Storage(
        "Azure",
        "Azure Data Lake Storage Gen2",
        (
            Field("account-name", "Storage account", required=True),
            Field("filesystem", "Container", "It must exist", required=True),
            _PREFIX,
        ),
        "az",
        (
            Field("tenant-id", "Tenant", only="client-credentials"),
            Field("client-id", "Application", only="client-credentials"),
            Field("client-secret", "Secret of the application", kind="secret", only="client-credentials"),
            Field("key", "Account key", kind="secret", only="shared-access-key"),
        ),
        ("client-credentials", "shared-access-key", "azure-system-identity"),
    ),
    "gcs": Storage(
        "Google Cloud",
        "Google Cloud Storage",
        (Field("bucket", "Bucket", "It must exist", required=True), _PREFIX),
        "gcs",
        (Field("key", "Key of a service account, as JSON", kind="secret", only="service-account-key"),),
        ("service-account-key", "gcp-system-identity"),
    ),
    "local": Storage(
        "Directory",
        "A directory that the server and every engine reach under the same path, to try things out",
        (Field("base-path", "Path", "Below one of the server's storage.local_roots", required=True),),
    ),
}


def profile_of(kind: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """The storage profile of a form that was sent; empty fields are left out."""
    found: dict[str, Any] = {"type": kind}
    for field in STORAGES[kind].profile:
        text = sent.get(field.name, "").strip()
        if field.kind == "check":
            found[field.name] = bool(text)
        elif text:
            found[field.name] = text
    return found


def credential_of(kind: str, sent: Mapping[str, str]) -> dict[str, Any] | None:
    """The credential of a form that was sent; None for storage that has none."""
    storage = STORAGES[kind]
    if not storage.family:
        return None
    chosen = sent.get("credential-type") or storage.kinds[0]
    values: dict[str, Any] = {}
    for field in storage.credential:
        text = sent.get(f"credential-{field.name}", "").strip()
        if field.only == chosen and text:
            values[field.name] = _object(text) if chosen == "service-account-key" else text
    return {"type": storage.family, "credential-type": chosen, **values}


def _object(text: str) -> Any:  # noqa: ANN401 JSON
    try:
        return json.loads(text)
    except ValueError:
        return text  # the credential's own check says what is expected


def delete_profile_of(sent: Mapping[str, str]) -> dict[str, Any]:
    """Soft deletion for the days in the form; hard deletion for none."""
    days = sent.get("days", "").strip()
    if days in {"", "0"}:
        return {"type": "hard"}
    return {"type": "soft", "expiration-seconds": int(days) * DAY_S if days.isascii() and days.isdigit() else days}
