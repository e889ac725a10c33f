"""Finds a claim by a dotted path, as it is written in the configuration; for verified_token.py."""

from typing import Any

Claims = dict[str, Any]


def claim_at(claims: object, path: str) -> object:
    """Return the claim at `path`, for example `realm_access.roles`; None if there is none.

    A claim's name may contain dots itself (`https://example.org/roles`): the longest matching name wins.
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
