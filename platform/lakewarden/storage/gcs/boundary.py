"""Tokens that reach the objects below one prefix only: credential access boundaries.

The form of the exchange is that of Google's Security Token Service (RFC 8693), the boundary that of "Downscope with
Credential Access Boundaries" in the documentation of IAM.
"""

import json
from typing import Any, Final
from urllib.parse import quote

from lakewarden.storage.client_access import AccessLevel

_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 a name
_ROLES: Final = {
    AccessLevel.READ: "inRole:roles/storage.objectViewer",
    AccessLevel.WRITE: "inRole:roles/storage.objectUser",
}
UNSAFE: Final = "'\\\r\n"
"""What would end a literal of the condition's language; Google's subset of it has no other kind of literal."""


def boundary(*, bucket: str, prefix: str, level: AccessLevel) -> dict[str, Any]:
    """One rule for all below `prefix`, which ends with a slash. ValueError if it cannot be written safely."""
    if any(character in UNSAFE for character in bucket + prefix) or not prefix.endswith("/"):
        raise ValueError(f"{prefix[:80]!r} cannot be the prefix of an access boundary")
    place = f"projects/_/buckets/{bucket}"
    condition = " || ".join(
        (
            f"resource.name.startsWith('{place}/objects/{prefix}')",
            # of buckets with a hierarchical namespace
            f"resource.name.startsWith('{place}/folders/{prefix}')",
            # a list names the bucket, and not what is listed
            f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{prefix}')",
        )
    )
    rule = {
        "availableResource": f"//storage.googleapis.com/{place}",
        "availablePermissions": [_ROLES[level]],
        "availabilityCondition": {"title": "one-table", "expression": condition},
    }
    return {"accessBoundary": {"accessBoundaryRules": [rule]}}


def exchange_form(token: str, limits: dict[str, Any]) -> dict[str, str]:
    """The form of the exchange; the service decodes `options` once more after it has read the form."""
    return {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": _TOKEN_TYPE,
        "subject_token_type": _TOKEN_TYPE,
        "subject_token": token,
        "options": quote(json.dumps(limits), safe=""),
    }
