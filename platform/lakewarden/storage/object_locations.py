"""Locations on object stores: `scheme://bucket/key`, where a key is text, and folders do not exist."""

import re
from collections.abc import Collection

from lakewarden.storage.interface import StorageError

MAX_KEY_BYTES = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_AMBIGUOUS = frozenset({"", ".", ".."})
_ROOM = 124
"""In bytes, for what a table's location and a file's name add to a warehouse's prefix."""


def normal_location(location: str, *, scheme: str, alternatives: Collection[str] = ()) -> str:
    """The location in the scheme, without a slash at its end; StorageError for what engines may read differently.

    Keys are not decoded: `%20` in a location is these three characters in the key.
    """
    found, separator, rest = location.partition("://")
    if not separator or found.lower() not in {scheme, *alternatives}:
        allowed = " or ".join(f"{each}://" for each in (scheme, *alternatives))
        raise StorageError(f"{location[:200]!r} is not a location of this storage: {allowed} is expected")
    bucket, _, key = rest.partition("/")
    if not bucket:
        raise StorageError(f"{location[:200]!r} does not name a bucket")
    key = key.rstrip("/")
    if key and (problem := problem_of(key)):
        raise StorageError(f"{location[:200]!r} {problem}")
    return f"{scheme}://{bucket}/{key}" if key else f"{scheme}://{bucket}"


def normal_prefix(prefix: str | None) -> str | None:
    """The prefix of a warehouse's keys without slashes around it; None: the whole bucket. ValueError if not valid."""
    key = (prefix or "").strip("/")
    if not key:
        return None
    if problem := problem_of(key):
        raise ValueError(f"{prefix[:80] if prefix else ''!r} {problem}")
    if len(key.encode()) > MAX_KEY_BYTES - _ROOM:
        raise ValueError(f"{key[:80]!r}… is too long: {MAX_KEY_BYTES - _ROOM} bytes are allowed")
    return key


def problem_of(key: str) -> str | None:
    """What Hadoop's paths, or the URLs of signed requests, would make another key of."""
    if _CONTROL.search(key):
        return "contains a control character"
    if "\\" in key:
        return "contains a backslash"
    if not _AMBIGUOUS.isdisjoint(key.split("/")):
        return "contains an empty folder, '.' or '..'"
    if len(key) * 4 > MAX_KEY_BYTES and len(key.encode()) > MAX_KEY_BYTES:
        return f"has a key of more than {MAX_KEY_BYTES} bytes"
    return None
