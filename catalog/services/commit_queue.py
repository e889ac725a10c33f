"""Lets this process commit to each table one at a time, so that its commits do not race and write files in vain.

This applies to commits on the ordinary path; `catalog.services.commit_writer` carries out most commits in groups.

Other processes are not coordinated here: the compare-and-swap in the database decides. When the current commit makes no
progress (another session has locked the row), at most half of the server's threads wait behind it, and the rest stay
free.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from uuid import UUID

from lakewarden import config
from lakewarden.errors import Unavailable

STANDSTILL_S = 1.0


class _Turn:
    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.taken_at = time.monotonic()


class CommitQueue:
    def __init__(self) -> None:
        self._turns: dict[UUID, _Turn] = {}
        self._guard = Lock()

    @contextmanager
    def of(self, identifier: UUID) -> Iterator[None]:
        """Wait for earlier commits to the same object. Raises Unavailable after the lock time-out."""
        with self._guard:
            turn = self._turns.setdefault(identifier, _Turn())
            turn.users += 1
        try:
            if not _took(turn):
                raise Unavailable("Other changes of the same object took too long; nothing was changed. Try again")
            try:
                turn.taken_at = time.monotonic()
                yield
            finally:
                turn.lock.release()
        finally:
            with self._guard:
                turn.users -= 1
                if not turn.users:
                    self._turns.pop(identifier, None)


def _took(turn: _Turn) -> bool:
    settings = config.current()
    deadline = time.monotonic() + settings.database.lock_timeout_s
    while (left := deadline - time.monotonic()) > 0:
        if turn.lock.acquire(timeout=min(left, STANDSTILL_S)):
            return True
        stands_still = time.monotonic() - turn.taken_at >= STANDSTILL_S
        if stands_still and turn.users > max(1, settings.server.threads // 2):
            return False
    return False


COMMIT_QUEUE = CommitQueue()
