"""Locations on ADLS: `abfss://filesystem@account.host/path`, as the driver of Hadoop writes them."""

import re
from typing import Final

from lakewarden.storage.interface import StorageError
from lakewarden.storage.object_locations import normal_location

SCHEME: Final = "abfss"
ALTERNATIVES: Final = ("abfs", "wasbs", "wasb")
"""Schemes of Hadoop for the same files, where the profile allows them."""

_BLOB_SCHEMES = {"wasbs", "wasb"}
_AUTHORITY = re.compile(r"[a-z0-9-]{3,63}@[a-z0-9-]+(\.[a-z0-9-]+)+")


def normal_adls_location(location: str, *, allow_alternatives: bool) -> str:
    """The location as `abfss://`; StorageError for what is not a location on ADLS."""
    scheme, _, rest = location.partition("://")
    authority, slash, path = rest.partition("/")
    authority = authority.lower()
    if allow_alternatives and scheme.lower() in _BLOB_SCHEMES:
        # the same files by the older service
        authority = authority.replace(".blob.", ".dfs.", 1)
    alternatives = ALTERNATIVES if allow_alternatives else ()
    normal = normal_location(f"{scheme}://{authority}{slash}{path}", scheme=SCHEME, alternatives=alternatives)
    if not _AUTHORITY.fullmatch(authority):
        raise StorageError(f"{location[:200]!r} is not of the form abfss://filesystem@account.host/path")
    if problem := problem_of(path.rstrip("/")):
        raise StorageError(f"{location[:200]!r} {problem}")
    return normal


def problem_of(path: str) -> str | None:
    """What the service or its clients would make another path of."""
    if any(part.endswith(".") for part in path.split("/")):
        return "contains a folder that ends with '.': the service may drop the dot"
    return None
