"""The forms of a new warehouse, by type of storage, and what the management API would receive for them. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Field:
    """`name` as in the profile or credential. `kind`: text, secret, check or choice; `only` are types of credential."""

    name: str
    label: str
    hint: str = ""
    kind: str = "text"
    options: tuple[str, ...] = ()
    required: bool = False
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """A type of storage. `family` is the type of its credentials (empty: it has none), `fixed` what the profile has in
    any case.
    """

    title: str
    text: str
    profile: tuple[Field, ...]
    family: str = ""
    credential: tuple[Field, ...] = ()
    kinds: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)


_PREFIX: Final = Field("key-prefix", "Folder in it", "Optional. Leave it empty to use the whole bucket")
_R2: Final = ("cloudflare-r2",)
STORAGES: Final[dict[str, Storage]] = {
    "s3": Storage(
        "S3",
        "Amazon S3, MinIO, Ceph and others that speak S3",
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
            Field("access-key-id", "Access key", only=("access-key",)),
            Field("secret-access-key", "Secret key", kind="secret", only=("access-key",)),
        ),
        ("access-key", "aws-system-identity"),
    ),
    "r2": Storage(
        "Cloudflare R2",
        "A bucket of Cloudflare R2, whose API issues keys for one table to engines",
        (
            Field("bucket", "Bucket", "It must exist", required=True),
            Field(
                "endpoint",
                "S3 API of the account",
                "As R2 shows it, for example https://0123abcd.r2.cloudflarestorage.com",
                required=True,
            ),
            _PREFIX,
        ),
        "s3",
        (
            Field("account-id", "Account", only=_R2),
            Field("access-key-id", "Access key of an R2 API token", only=_R2),
            Field("secret-access-key", "Secret key of that token", kind="secret", only=_R2),
            Field("token", "The value of the token itself", kind="secret", only=_R2),
        ),
        _R2,
        {"type": "s3", "region": "auto", "flavor": "s3-compat", "sts-enabled": True},
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
            Field("tenant-id", "Tenant", only=("client-credentials",)),
            Field("client-id", "Application", only=("client-credentials",)),
            Field("client-secret", "Secret of the application", kind="secret", only=("client-credentials",)),
            Field("key", "Account key", kind="secret", only=("shared-access-key",)),
        ),
        ("client-credentials", "shared-access-key", "azure-system-identity"),
    ),
    "gcs": Storage(
        "Google Cloud",
        "Google Cloud Storage",
        (Field("bucket", "Bucket", "It must exist", required=True), _PREFIX),
        "gcs",
        (Field("key", "Key of a service account, as JSON", kind="secret", only=("service-account-key",)),),
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
    found: dict[str, Any] = {"type": kind, **STORAGES[kind].fixed}
    for each in STORAGES[kind].profile:
        text = sent.get(each.name, "").strip()
        if each.kind == "check":
            found[each.name] = bool(text)
        elif text:
            found[each.name] = text
    return found


def kind_of(profile: Mapping[str, Any], credential_type: str) -> str:
    """Which form a warehouse has that exists."""
    return "r2" if credential_type in _R2 else str(profile["type"])


def typed_of(kind: str, profile: Mapping[str, Any]) -> dict[str, str]:
    """A profile as its form would send it."""
    values = {each.name: profile.get(each.name) for each in STORAGES[kind].profile}
    return {name: "true" if value is True else str(value) for name, value in values.items() if value}


def changed_profile(kind: str, before: Mapping[str, Any], sent: Mapping[str, str]) -> dict[str, Any]:
    """The profile with what the form has; what it does not have stays as it is."""
    names = {each.name for each in STORAGES[kind].profile}
    return {name: value for name, value in before.items() if name not in names} | profile_of(kind, sent)


def credential_of(kind: str, sent: Mapping[str, str]) -> dict[str, Any] | None:
    """The credential of a form that was sent; None for storage that has none."""
    storage = STORAGES[kind]
    if not storage.family:
        return None
    chosen = sent.get("credential-type") or storage.kinds[0]
    values: dict[str, Any] = {}
    for each in storage.credential:
        text = sent.get(f"credential-{each.name}", "").strip()
        if chosen in each.only and text:
            values[each.name] = _object(text) if chosen == "service-account-key" else text
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
