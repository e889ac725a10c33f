"""The positions that a table's history names."""

from typing import Any
from uuid import UUID

from pipeline.jobs.metadata import LOG_ID, TO_POSITION, Metadata

LOG, OTHER = UUID(int=1), UUID(int=2)


def snapshot(number: int, *, parent: int | None = None, log: UUID | None = None, to: int = 0) -> dict[str, Any]:
    summary = {"operation": "append"} | ({LOG_ID: str(log), TO_POSITION: str(to)} if log else {})
    return {"snapshot-id": number, "parent-snapshot-id": parent, "summary": summary}


def covered(current: int | None, *snapshots: dict[str, Any]) -> int | None:
    found = Metadata({"current-snapshot-id": current, "snapshots": list(snapshots)}).covered(LOG)
    return found.to if found else None


def test_the_newest_snapshot_of_the_log_counts() -> None:
    compacted = snapshot(3, parent=2)
    assert covered(3, snapshot(1, log=LOG, to=5), snapshot(2, parent=1, log=LOG, to=9), compacted) == 9


def test_snapshots_of_another_log_or_without_positions_do_not_count() -> None:
    assert covered(2, snapshot(1), snapshot(2, parent=1, log=OTHER, to=9)) is None
    assert covered(None) is None


def test_what_was_rolled_back_does_not_count() -> None:
    assert covered(1, snapshot(1, log=LOG, to=5), snapshot(2, parent=1, log=LOG, to=9)) == 5


def test_ancestors_may_have_expired() -> None:
    assert covered(3, snapshot(3, parent=2), snapshot(1, log=LOG, to=5)) is None
