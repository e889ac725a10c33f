"""Finds a claim by a dotted path, as operators write it in the configuration; for principal_from_claims.py."""

from typing import Any

Claims = dict[str, Any]


def claim_at(claims: object, path: str) -> object:
    """Return what lies at `path`, for example `realm_access.roles`; None when there is nothing.

    A name may hold dots itself (`https://example.org/roles`): the longest name that is there wins.
    """
    if not isinstance(claims, dict):
        return None
    if path in claims:
        found: object = claims[path]
        return found
    for end in range(len(path) - 1, 0, -1):
        if path[end] == "." and path[:end] in claims:
            below = claim_at(claims[path[:end]], path[end + 1 :])
            if below is not None:
                return below
    return None
