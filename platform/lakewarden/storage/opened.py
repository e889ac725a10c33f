"""Remembers opened storages, and what signs for them: both are dear to open, with a credential of the secret store."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from lakewarden.storage.interface import StorageBusy
from lakewarden.storage.made_once import MadeOnce, StillBeingMade

T = TypeVar("T")

PATIENCE_S = 30.0


class OpenedStorages(Generic[T]):
    """At most `most`, of the whole process; whoever wants one that is being opened waits for that."""

    def __init__(self, most: int, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._opened: MadeOnce[T] = MadeOnce(most)

    def get(self, key: Hashable, opening: Callable[[], T]) -> T:
        """Raises what `opening` raises, which is not remembered, and StorageBusy if another caller's takes too long."""
        try:
            return self._opened.get(key, opening, patience_s=self._patience_s)
        except StillBeingMade:
            raise StorageBusy("The warehouse's storage is still being opened") from None
