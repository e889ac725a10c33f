"""Entity tags of tables and views (RFC 9110, 8.8.3).

A tag contains everything that determines the response: the object, its version, and which snapshots are included. It
is weak, because the same response is sent with and without compression.
"""

from uuid import UUID


def of(identifier: UUID, version: int, *, snapshots: str = "all") -> str:
    return f'W/"{identifier.hex}.{version}.{snapshots}"'


def matches(if_none_match: str | None, tag: str) -> bool:
    """Whether the client's copy is current; `*` does not match, because the client must send a tag to get 304."""
    if not if_none_match:
        return False
    opaque = tag.removeprefix("W/")
    return any(part.strip().removeprefix("W/") == opaque for part in if_none_match.split(","))
