"""What the errors of Azure Storage mean for a warehouse, and what to change."""

from typing import Final

from lakewarden.storage.object_faults import Fault

_ADVICE: Final = {
    "AuthenticationFailed": "it does not accept the credential; check the key or the client secret, and the clocks",
    "AuthorizationFailure": "it does not accept the credential, or the network of the server; check the account's "
    "key and firewall",
    "AuthorizationPermissionMismatch": "the identity may not do this; it needs the role "
    "Storage Blob Data Contributor for the filesystem",
    "InvalidAuthenticationInfo": "it does not accept the token; check authority-host and tenant-id",
    "KeyBasedAuthenticationNotPermitted": "the account does not allow keys; use client-credentials",
    "NoAuthenticationInformation": "it received no credential; check authority-host and tenant-id",
    "ContainerNotFound": "the filesystem does not exist; check filesystem and account-name, or create it",
    "ContainerBeingDeleted": "the filesystem is being deleted",
    "AccountIsDisabled": "the account is disabled",
    "InsufficientAccountPermissions": "the account may not do this",
}


def advice(fault: Fault) -> str | None:
    known = _ADVICE.get(fault.code) if fault.code else None
    return f"{known} ({fault.code})" if known else None
