"""One commit at a time for each table in this process: who waits here loses no race and writes no file in vain.

Only a matter of speed. Other processes are not seen; the compare-and-swap in the database decides.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from uuid import UUID

PATIENCE_S = 10.0


class _Turn:
    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0


class Turns:
    def __init__(self) -> None:
        self._turns: dict[UUID, _Turn] = {}
        self._guard = Lock()

    @contextmanager
    def of(self, identifier: UUID) -> Iterator[None]:
        """Wait for the others of the same object, but not for ever."""
        with self._guard:
            turn = self._turns.setdefault(identifier, _Turn())
            turn.users += 1
        mine = turn.lock.acquire(timeout=PATIENCE_S)
        try:
            yield
        finally:
            if mine:
                turn.lock.release()
            with self._guard:
                turn.users -= 1
                if not turn.users:
                    self._turns.pop(identifier, None)


TURNS = Turns()
