"""Audit rows that say how many decisions or refusals have no row, because they arrived faster
than they were written.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from lakewarden.audit.entries import Entry
from lakewarden.context import SYSTEM

OVERFULL: Final = SYSTEM
"""The caller for losses that are not due to one caller: the buffer was full."""

Lost = Counter[tuple[str | None, str]]
"""How many entries were lost, by project and by the caller who had too many."""


def entries(lost: Lost, what: str) -> Iterable[Entry]:
    """One row for each project and caller with losses."""
    for (project_id, actor), number in lost.items():
        whose = what if actor == OVERFULL else f"different {what} of this caller"
        yield Entry(
            at=datetime.now(UTC),
            actor=actor,
            action=f"lose{what.capitalize()}",
            object_type="project" if project_id else "server",
            object_id=project_id or "server",
            project_id=project_id,
            outcome="lost",
            reason=f"{number} {whose} arrived faster than they could be written and have no entry",
            count=number,
            details={"count": number},
        )
