"""Entity tags of tables and views (RFC 9110, 8.8.3).

A tag contains everything that determines the response: the object, its version, the history of the database, in which
versions are counted, which snapshots are included, and the mark of the credentials, so that a client whose credentials
are old is never told to keep them. It is weak, because the same response is sent with and without compression.
"""

from typing import Final
from uuid import UUID

from lakewarden.postgres import history

VARY: Final = "Accept-Encoding, Authorization, X-Iceberg-Access-Delegation"
"""The request headers that select the representation; all answers add the project's (see `http.conventions`)."""


def of(identifier: UUID, version: int, *, snapshots: str = "all", mark: str = "") -> str:
    """`mark` is that of the answer's `Addition`."""
    return f'W/"{identifier.hex}.{version}.{history.mark()}.{snapshots}{mark}"'


def matches(if_none_match: str | None, tag: str) -> bool:
    """Whether the client's copy is current; `*` does not match, because the client must send a tag to get 304."""
    if not if_none_match:
        return False
    opaque = tag.removeprefix("W/")
    return any(part.strip().removeprefix("W/") == opaque for part in if_none_match.split(","))
