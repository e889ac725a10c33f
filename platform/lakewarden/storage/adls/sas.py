"""Shared access signatures for a directory, or a whole filesystem. Pure: nothing is asked or kept.

The fields and the text that is signed are in "Create a service SAS" and "Create a user delegation SAS" of the REST API
of Azure Storage, for the version below.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from lakewarden.storage.client_access import AccessLevel

VERSION: Final = "2025-01-05"
"""Of the service: it decides which fields are signed, and in which order."""

PERMISSIONS: Final = {
    AccessLevel.READ: "rl",
    AccessLevel.WRITE: "racwdl",
}
"""Letters in the order that the service demands: read, add, create, write, delete, list."""


@dataclass(frozen=True, slots=True)
class DelegationKey:
    """A key of an identity, issued by the account for at most seven days ("Get User Delegation Key").

    The fields that are signed are texts, as they came.
    """

    object_id: str
    tenant_id: str
    start: str
    expiry: str
    service: str
    version: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Directory:
    """What a signature gives access to: `path` is in clear, without slashes around it; empty: the whole filesystem."""

    account: str
    filesystem: str
    path: str

    @property
    def resource(self) -> str:
        return "/".join(filter(None, ("/blob", self.account, self.filesystem, self.path)))

    @property
    def fields(self) -> list[tuple[str, str]]:
        if not self.path:
            return [("sr", "c")]
        return [("sr", "d"), ("sdd", str(self.path.count("/") + 1))]


@dataclass(frozen=True, slots=True)
class Grant:
    """`schemes`: "https", or "https,http" where the service has no TLS."""

    level: AccessLevel
    start: datetime
    expiry: datetime
    schemes: str = "https"

    @property
    def permissions(self) -> str:
        return PERMISSIONS[self.level]


def signed_by_account(directory: Directory, grant: Grant, *, key: str) -> str:
    """A service SAS, signed with a key of the account (Base64)."""
    # no stored policy
    return _signed(directory, grant, key, between=[""], delegation=[])


def signed_by_identity(directory: Directory, grant: Grant, *, key: DelegationKey) -> str:
    """A user delegation SAS: it can do no more than the identity of the key."""
    delegation = [
        ("skoid", key.object_id),
        ("sktid", key.tenant_id),
        ("skt", key.start),
        ("ske", key.expiry),
        ("sks", key.service),
        ("skv", key.version),
    ]
    # neither authorized nor unauthorized objects, no correlation id
    between = [*(value for _, value in delegation), "", "", ""]
    return _signed(directory, grant, key.value, between=between, delegation=delegation)


def _signed(
    directory: Directory, grant: Grant, key: str, *, between: Sequence[str], delegation: Sequence[tuple[str, str]]
) -> str:
    start, expiry = instant(grant.start), instant(grant.expiry)
    # after the resource: no snapshot, no encryption scope, and none of the five headers of answers
    (_, kind), *_ = directory.fields
    rest = ["", grant.schemes, VERSION, kind, "", "", "", "", "", "", ""]
    text = "\n".join([grant.permissions, start, expiry, directory.resource, *between, *rest])
    digest = hmac.new(b64decode(key), text.encode(), hashlib.sha256).digest()
    fields = [
        ("st", start),
        ("se", expiry),
        ("sp", grant.permissions),
        ("spr", grant.schemes),
        ("sv", VERSION),
        *directory.fields,
        *delegation,
        ("sig", b64encode(digest).decode()),
    ]
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields)


def instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
