"""How many requirements, updates and tables one commit may contain."""

from collections.abc import Sequence

import msgspec

from lakewarden import config
from lakewarden.errors import BadRequest


def check_commit(requirements: Sequence[object], updates: Sequence[object]) -> None:
    """Raises BadRequest when there are more than `catalog.max_updates_per_commit` requirements or updates."""
    most = config.current().catalog.max_updates_per_commit
    for name, given in (("requirements", requirements), ("updates", updates)):
        if len(given) > most:
            raise BadRequest(
                f"Invalid commit: it has {len(given)} {name}, at most {most} are allowed "
                "(catalog.max_updates_per_commit): split it"
            )


def size(requirements: Sequence[msgspec.Raw], updates: Sequence[msgspec.Raw]) -> int:
    """The size of a commit's requirements and updates, in bytes of JSON."""
    return sum(memoryview(each).nbytes for each in (*requirements, *updates))


def check_transaction(changes: Sequence[object]) -> None:
    """Raises BadRequest when there are more than `catalog.max_changes_per_transaction`."""
    most = config.current().catalog.max_changes_per_transaction
    if len(changes) > most:
        raise BadRequest(
            f"Invalid transaction: it changes {len(changes)} tables, at most {most} are allowed "
            "(catalog.max_changes_per_transaction)"
        )
