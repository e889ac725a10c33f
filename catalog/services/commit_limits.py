"""How much one commit may ask for."""

from collections.abc import Sequence

import msgspec

from lakewarden import config
from lakewarden.errors import BadRequest


def check_commit(requirements: Sequence[object], updates: Sequence[object]) -> None:
    """Raises BadRequest when there are more than `catalog.max_updates_per_commit` of one of them."""
    most = config.current().catalog.max_updates_per_commit
    for name, given in (("requirements", requirements), ("updates", updates)):
        if len(given) > most:
            raise BadRequest(
                f"Invalid commit: it has {len(given)} {name}, at most {most} are allowed "
                "(catalog.max_updates_per_commit): split it"
            )


def size(requirements: Sequence[msgspec.Raw], updates: Sequence[msgspec.Raw]) -> int:
    """How many bytes of JSON a commit asks for."""
    return sum(memoryview(each).nbytes for each in (*requirements, *updates))


def check_transaction(changes: Sequence[object]) -> None:
    """Raises BadRequest when there are more than `catalog.max_changes_per_transaction`."""
    most = config.current().catalog.max_changes_per_transaction
    if len(changes) > most:
        raise BadRequest(
            f"Invalid transaction: it changes {len(changes)} tables, at most {most} are allowed "
            "(catalog.max_changes_per_transaction)"
        )
