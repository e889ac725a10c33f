"""Writes audit entries in one statement, and shortens values that clients sent."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from lakewarden.prepared_statements import execute

MAX_TEXT: Final = 200  # characters of an actor, an object's id, a path
_MAX_REASON: Final = 500  # characters
MAX_USER_AGENT: Final = 256  # bytes
_BATCH: Final = 2000
_MAX_COUNT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The values of one row of AuditEntry."""

    at: datetime
    actor: str
    action: str
    object_type: str
    object_id: str
    outcome: str
    project_id: str | None = None
    assumed_role: str = ""
    reason: str = ""
    request_id: str = ""
    user_agent: str = ""
    count: int = 1
    last_at: datetime | None = None
    details: dict[str, object] = field(default_factory=dict)


def write(entries: Sequence[Entry]) -> None:
    """Insert the entries in the caller's transaction. Raises django.db.Error."""
    for start in range(0, len(entries), _BATCH):
        rows = [_values(entry) for entry in entries[start : start + _BATCH]]
        execute(_INSERT, [list(column) for column in zip(*rows, strict=True)])


def _values(entry: Entry) -> tuple[object, ...]:
    return (
        entry.at,
        plain(entry.actor),
        entry.assumed_role,
        entry.action,
        entry.object_type,
        plain(entry.object_id),
        entry.project_id,
        entry.outcome,
        plain(entry.reason, _MAX_REASON),
        entry.request_id,
        user_agent_of(entry.user_agent),
        min(entry.count, _MAX_COUNT),
        entry.last_at,
        json.dumps(entry.details),
    )


# sorted, so ids rise with time within a batch
_INSERT = """
    insert into audit_entry (at, actor, assumed_role, action, object_type, object_id, project_id, outcome, reason,
                             request_id, user_agent, count, last_at, details)
    select * from unnest(%s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                         %s::text[], %s::text[], %s::text[], %s::text[], %s::int[], %s::timestamptz[],
                         %s::jsonb[]) as e(at)
    order by e.at
"""
INTO: Final = """
    insert into audit_entry (at, actor, assumed_role, action, object_type, object_id, project_id, outcome, request_id,
                             user_agent, details)
"""
"""For statements that record a change with its entry."""
AUDITED: Final = f"""
    audited as (
        {INTO}
        select now(), actor, role, type, object_type, object_id, project_id, 'done', request_id, user_agent, data
        from changes order by n
    )
"""  # noqa: S608 constants
"""For a `with` list that has the changes made by it: their entries, in the order of `n`."""


def plain(text: str, most: int = MAX_TEXT) -> str:
    """The first `most` characters of a text from a client, without characters that the database refuses."""
    return text[:most].replace("\x00", "").encode("utf-8", "replace").decode()


def user_agent_of(header: str) -> str:
    """The first 256 bytes of a User-Agent header."""
    return plain(header, MAX_USER_AGENT).encode()[:MAX_USER_AGENT].decode(errors="ignore")
