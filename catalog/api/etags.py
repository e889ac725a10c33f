"""Entity tags of tables and views: which answer a client holds (RFC 9110, 8.8.3).

A tag covers all that shapes the answer: the object, its version, and which snapshots are in it. It is weak, as the
same answer is sent compressed and not.
"""

from uuid import UUID


def of(identifier: UUID, version: int, *, snapshots: str = "all") -> str:
    return f'W/"{identifier.hex}.{version}.{snapshots}"'


def matches(if_none_match: str | None, tag: str) -> bool:
    """Whether the client's copy is this one; `*` is none, since we cannot know which one it means."""
    if not if_none_match:
        return False
    opaque = tag.removeprefix("W/")
    return any(part.strip().removeprefix("W/") == opaque for part in if_none_match.split(","))
