"""What the errors of Google Cloud Storage mean for a warehouse, and what to change."""

from lakewarden.storage.object_faults import Fault

_UNAUTHENTICATED, _FORBIDDEN = 401, 403


def advice(fault: Fault) -> str | None:
    if fault.status == _UNAUTHENTICATED:
        return "it does not accept the token of the service account; check the key, and whether the account is enabled"
    if fault.status == _FORBIDDEN:
        return (
            "the service account may not do this; it needs the role Storage Object User "
            "(roles/storage.objectUser) for the bucket"
        )
    return None
